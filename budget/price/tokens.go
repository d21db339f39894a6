package price

import (
	"bytes"
	"cmp"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"

	"github.com/outlay-go/outlay/budget"
)

// Tokens prices calls of LLMs, in the shapes of OpenAI, Anthropic and Gemini.
//
// The quote is an upper bound: no text has more tokens than its JSON has bytes, and no
// answer more than the limit that the request sets. Input whose size the request does
// not show, such as an image, a file or an earlier conversation, counts as a full
// context of the model. The real cost is read from the usage in the answer, JSON or
// stream; an answer without it, or cut before it, leaves the cost unknown. What
// vendors charge beside tokens, such as for a web search, is not priced, and sounds and
// pictures that a model makes count as its output.
//
// A call is unpriced ([budget.ErrUnpriced]) if its model is not in Models, or if its
// input or output has no bound.
type Tokens struct {
	// Models are the prices by the model's name in requests, or by that of an Azure
	// deployment. A name stands for its releases too: "gpt-4o-mini" for
	// "gpt-4o-mini-2024-07-18", not for "gpt-4o-mini-audio".
	Models map[string]Model
	// MaxOutput is assumed where a request sets no limit. Zero: such calls are unpriced.
	MaxOutput int64
	// BytesPerToken divides the size of the input. Zero: one, which is always enough.
	// About four is the mean of English prose; the hold may then be below the cost.
	BytesPerToken int64
	// Currency of the prices, an ISO 4217 code. Empty: USD.
	Currency string
}

// Model has the prices of one model, per million tokens: 150_000_000 is $0.15. It
// knows no price if Input and Output are both zero.
type Model struct {
	Input, Output budget.Amount
	// CachedInput is the price of input read from a cache. Zero: that of Input.
	CachedInput budget.Amount
	// CacheWrite and CacheWrite1h are the prices of input written to a cache, for five
	// minutes and for an hour. Zero: twice Input, the dearest known.
	CacheWrite, CacheWrite1h budget.Amount
	// Context is the most tokens that the model can read. Zero: unknown, and input
	// whose size the request does not show is unpriced.
	Context int64
	// Long has the prices of calls that read more than LongFrom tokens. Nil: the same.
	Long     *Model
	LongFrom int64
}

// overhead is more than what vendors add to a prompt by themselves, the text that
// describes tools included (Anthropic states up to some 600 tokens).
const overhead = 1024

// million tokens are what prices are given for.
const million = 1_000_000

// Unit is the currency of the prices.
func (t Tokens) Unit() string { return unitOr(t.Currency) }

// Quote bounds the cost of a call by its size and limits. It reads the body as it
// passes and keeps none of it.
func (t Tokens) Quote(r *http.Request) (budget.Quote, error) {
	p, err := readPrompt(r)
	if err != nil {
		return budget.Quote{}, err
	}
	m, ok := modelNamed(t.Models, cmp.Or(modelInPath(r.URL.Path), p.model)) // the path's is what is billed
	if !ok || !m.valid() {
		return budget.Quote{}, unpriced("no price for the model")
	}
	in := p.size/max(1, t.BytesPerToken) + overhead
	switch {
	case m.Context > 0 && (p.opaque || in > m.Context):
		in = m.Context
	case p.opaque:
		return budget.Quote{}, unpriced("the input has no bound: the model's Context is not given")
	}
	out, err := t.output(m, &p)
	if err != nil {
		return budget.Quote{}, err
	}
	b := billed{input: in, output: out}
	switch {
	case p.caches1h:
		b.input, b.cacheWrite1h = 0, in
	case p.caches:
		b.input, b.cacheWrite = 0, in
	}
	// A long context may not be reached, but who knows which of both is dearer.
	a, err := m.cost(b)
	if err == nil && m.Long != nil && in > m.LongFrom {
		var long budget.Amount
		long, err = m.Long.cost(b)
		a = max(a, long)
	}
	return budget.Quote{Amount: a, Unit: t.Unit(), Units: in + out}, err
}

// output is the most tokens that the answers may have together.
func (t Tokens) output(m Model, p *promptSize) (int64, error) {
	out := p.maxOutput
	switch {
	case p.bad:
		return 0, unpriced("a limit in the request is no number")
	case m.Output == 0 && (m.Long == nil || m.Long.Output == 0):
		return 0, nil // embeddings
	case out == 0:
		out = t.MaxOutput
	}
	if out <= 0 {
		return 0, unpriced("the output has no bound: the request sets none")
	}
	if p.answers > maxTokens/out {
		return 0, unpriced("the output has no bound: too many answers")
	}
	return out * max(1, p.answers), nil
}

// valid reports whether the prices can be used.
func (m Model) valid() bool {
	lowest := min(m.Input, m.Output, m.CachedInput, m.CacheWrite, m.CacheWrite1h)
	return lowest >= 0 && m.Input+m.Output != 0 && (m.Long == nil || m.Long.valid())
}

// cost prices tokens and rounds up once.
func (m Model) cost(b billed) (budget.Amount, error) {
	or := func(price, instead budget.Amount) budget.Amount {
		if price == 0 {
			return instead
		}
		return price
	}
	if m.Input > math.MaxInt64/2 {
		return 0, unpriced("the cost overflows")
	}
	var w wide
	w.add(m.Input, b.input)
	w.add(or(m.CachedInput, m.Input), b.cachedInput)
	w.add(or(m.CacheWrite, 2*m.Input), b.cacheWrite)
	w.add(or(m.CacheWrite1h, max(2*m.Input, m.CacheWrite)), b.cacheWrite1h)
	w.add(m.Output, b.output)
	w.add(max(m.Input, m.Output), b.unsure)
	return w.over(million)
}

// Meter reads the usage in a good answer as it passes. It keeps at most 256 KiB, for
// answers compressed with gzip; else next to nothing. The real cost is not known if
// the answer is cut, tells no usage or an absurd one, or is of a model without price.
func (t Tokens) Meter(resp *http.Response) (io.Writer, func() (budget.Amount, bool)) {
	if resp.StatusCode >= http.StatusMultipleChoices {
		return nil, nil
	}
	u, d := newUsage(), document{usage: newUsage()}
	e := newEvents(d.read, nil)
	e.document = func(text []byte, broken bool) {
		switch {
		case broken:
			u.forget()
		case string(bytes.TrimSpace(text)) == "[DONE]":
			u.final = true
		default:
			u.merge(&d, text != nil)
		}
		d.reset()
	}
	path := ""
	if resp.Request != nil && resp.Request.URL != nil {
		path = resp.Request.URL.Path
	}
	w, cost := metering(resp, e, func() (budget.Amount, bool) {
		a, ok := t.spent(&u, path)
		return a, ok && u.final
	})
	if w == nil {
		return w, cost
	}
	return &tokenMeter{w, &u}, cost
}

// tokenMeter also tells how many tokens an answer used.
type tokenMeter struct {
	io.Writer
	u *usage
}

// Units returns the tokens of prompt and answer together, once the cost was asked for.
func (m *tokenMeter) Units() (n int64, known bool) {
	b, ok := m.u.billed()
	return b.inputs() + b.output, ok && m.u.final
}

// spent prices a usage.
func (t Tokens) spent(u *usage, path string) (budget.Amount, bool) {
	b, ok := u.billed()
	if !ok {
		return 0, false
	}
	m, ok := modelNamed(t.Models, u.model)
	if !ok {
		m, ok = modelNamed(t.Models, modelInPath(path))
	}
	if !ok || !m.valid() {
		return 0, false
	}
	if m.Long != nil && b.inputs() > m.LongFrom {
		m = *m.Long
	}
	a, err := m.cost(b)
	return a, err == nil
}

// modelInPath finds the model in paths like Gemini's /v1beta/models/NAME:generateContent
// and Azure's /openai/deployments/NAME/chat/completions.
func modelInPath(path string) string {
	for _, before := range []string{"/models/", "/deployments/"} {
		if _, name, ok := strings.Cut(path, before); ok {
			name, _, _ = strings.Cut(name, "/")
			name, _, _ = strings.Cut(name, ":")
			return name
		}
	}
	return ""
}

// promptSize is what a request says that bounds its cost.
type promptSize struct {
	model     string
	size      int64 // bytes of the body
	maxOutput int64 // the largest limit that is set
	answers   int64 // how many are asked for
	opaque    bool  // there is input whose size does not show
	caches    bool  // input may be written to a cache
	caches1h  bool  // ... for an hour
	documents int   // that have ended
	bad       bool  // what it asks for cannot be known
}

// readPrompt reads the body of a request as it passes.
func readPrompt(r *http.Request) (promptSize, error) {
	body, err := reopen(r)
	if err != nil {
		return promptSize{}, err
	}
	defer body.Close()
	var p promptSize
	s := scanner{value: p.read, end: func() { p.documents++ }}
	// Without WriterTo: some give the body whole, as a copy.
	p.size, err = io.CopyBuffer(&s, struct{ io.Reader }{body}, make([]byte, 4<<10))
	return p, err
}

// opaque are the keys in a prompt whose content has nothing to do with its bytes:
// pictures and sounds, and references to what is elsewhere.
var opaque = map[string]bool{
	"image_url": true, "video_url": true, "input_audio": true, "source": true,
	"file_id": true, "file_url": true, "file_data": true,
	"inlineData": true, "inline_data": true, "fileData": true,
}

// read takes one scalar of the request.
func (p *promptSize) read(path, raw []byte, _ bool) {
	if string(raw) == "null" {
		return
	}
	if p.documents > 0 {
		p.bad = true // nobody knows which of two the vendor reads
	}
	switch string(path) {
	case "model":
		p.bad = p.bad || p.model != "" && p.model != string(raw)
		p.model = string(raw)
	case "max_tokens", "max_completion_tokens", "max_output_tokens", // Gemini takes both spellings of each name
		"generationConfig.maxOutputTokens", "generation_config.max_output_tokens",
		"generationConfig.max_output_tokens", "generation_config.maxOutputTokens":
		p.maxOutput = max(p.maxOutput, p.number(raw))
	case "n", "best_of", "generationConfig.candidateCount", "generation_config.candidate_count",
		"generationConfig.candidate_count", "generation_config.candidateCount":
		p.answers = max(p.answers, p.number(raw))
	case "previous_response_id", "conversation", "conversation.id", "prompt.id", "cachedContent", "cached_content",
		"web_search_options", "mcp_servers.type", "mcp_servers.url",
		"tools.google_search", "tools.googleSearch", "tools.google_search_retrieval", "tools.googleSearchRetrieval",
		"tools.google_maps", "tools.googleMaps", "tools.url_context", "tools.urlContext", "tools.code_execution", "tools.codeExecution",
		"tools.file_search", "tools.fileSearch":
		p.opaque = true
	case "service_tier":
		p.bad = p.bad || string(raw) == "priority" // dearer than the prices given
	case "tools.type": // all others run at the vendor, and what they find is input too
		p.opaque = p.opaque || string(raw) != "function" && string(raw) != "custom"
	default:
		p.readContent(path, raw)
	}
}

// readContent takes a scalar somewhere in the prompt.
func (p *promptSize) readContent(path, raw []byte) {
	root, rest, _ := bytes.Cut(path, []byte{'.'})
	switch string(root) {
	case "messages", "input", "contents", "system", "systemInstruction", "system_instruction", "tools":
	default:
		return
	}
	if bytes.Contains(path, []byte("cache_control")) {
		p.caches = true
		p.caches1h = p.caches1h || string(raw) == "1h"
	}
	if string(root) == "tools" {
		return // names in schemas are the user's own
	}
	for key := range bytes.SplitSeq(rest, []byte{'.'}) {
		p.opaque = p.opaque || opaque[string(key)]
	}
}

// number reads a limit; the vendor may understand what we do not.
func (p *promptSize) number(raw []byte) int64 {
	n, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil || n < 0 || n > maxTokens {
		p.bad = true
		return 0
	}
	return n
}

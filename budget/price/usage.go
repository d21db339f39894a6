package price

import (
	"bytes"
	"strconv"
	"strings"
)

// maxTokens is more than any call can read or write.
const maxTokens = 1_000_000_000

// usage is what an answer of an LLM says about the tokens that it is billed by, in the
// shapes of OpenAI (chat and responses), Anthropic and Gemini.
type usage struct {
	model string
	n     [lastCount]int64 // -1: not told
	final bool             // the counts are those of the whole answer
	bad   bool             // something was told that cannot be
}

// What the vendors tell.
const (
	prompt       = iota // OpenAI, Gemini: the input, what was cached included
	input               // Anthropic: the input, what was cached not included; OpenAI responses: as prompt
	output              // reasoning included
	cached              // part of prompt
	cacheRead           // Anthropic, beside input
	cacheWrite          // Anthropic, beside input
	cacheWrite1h        // part of cacheWrite
	thoughts            // Gemini, beside output
	tools               // Gemini, beside prompt
	total
	lastCount
)

// counts are the names by which the vendors tell them, as they document them.
var counts = map[string]int{
	"prompt_tokens": prompt, "promptTokenCount": prompt,
	"input_tokens":      input,
	"completion_tokens": output, "output_tokens": output, "candidatesTokenCount": output,
	"prompt_tokens_details.cached_tokens": cached, "input_tokens_details.cached_tokens": cached, "cachedContentTokenCount": cached,
	"cache_read_input_tokens": cacheRead, "cache_creation_input_tokens": cacheWrite,
	"cache_creation.ephemeral_1h_input_tokens": cacheWrite1h,
	"thoughtsTokenCount":                       thoughts, "toolUsePromptTokenCount": tools,
	"total_tokens": total, "totalTokenCount": total,
}

func newUsage() usage {
	u := usage{}
	for i := range u.n {
		u.n[i] = -1
	}
	return u
}

// document is what one document says. Only the whole of it counts.
type document struct {
	usage
	told    bool // it has a count
	choices bool // it has a part of the answer
	finish  bool // it says that the answer is whole
}

// reset makes room for the next document, which is of the same model.
func (d *document) reset() {
	model := d.model
	*d = document{usage: newUsage()}
	d.model = model
}

// read takes one scalar.
func (d *document) read(path, raw []byte, quoted bool) {
	switch string(path) {
	case "model", "message.model", "response.model", "modelVersion":
		if d.model != string(raw) {
			d.model = string(raw)
		}
		return
	case "type":
		switch string(raw) {
		case "message_stop", "response.completed", "response.incomplete", "response.failed":
			d.finish = true
		case "message_start":
			d.choices = true // its counts are those of the beginning
		}
		return
	case "choices.finish_reason", "candidates.finishReason", "delta.stop_reason":
		d.finish = d.finish || quoted
		d.choices = true
		return
	}
	switch root, _, _ := bytes.Cut(path, []byte{'.'}); string(root) {
	case "choices", "candidates", "delta":
		d.choices = true
		return
	}
	for _, place := range []string{"usage.", "message.usage.", "response.usage.", "usageMetadata."} {
		if name, ok := bytes.CutPrefix(path, []byte(place)); ok {
			d.count(name, raw, quoted)
		}
	}
}

func (d *document) count(name, raw []byte, quoted bool) {
	i, known := counts[string(name)]
	if !known || string(raw) == "null" {
		return
	}
	v, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil || quoted || v < 0 || v > maxTokens {
		d.bad = true
		return
	}
	d.n[i], d.told = v, true
}

// forget drops what was told before an event that could not be read: it may have told
// more.
func (u *usage) forget() {
	u.n, u.final = newUsage().n, false
}

// merge adds what a document of a stream, or the only document, says. The vendors'
// counts are of all so far, so the last holds.
func (u *usage) merge(d *document, stream bool) {
	if d.model != "" {
		u.model = d.model
	}
	u.bad = u.bad || d.bad
	for i, v := range d.n {
		if v >= 0 {
			u.n[i] = v
		}
	}
	switch {
	case !stream || d.finish:
		u.final = true
	case d.told:
		u.final = !d.choices // counts beside a part of the answer are of that part
	}
}

// billed is a usage in the terms of a price list.
type billed struct {
	input, cachedInput, cacheWrite, cacheWrite1h, output int64
	unsure                                               int64 // read or written, who knows
}

// billed sorts the counts. It reports false if they do not say what the answer cost.
func (u *usage) billed() (b billed, ok bool) {
	n := func(i int) int64 { return max(0, u.n[i]) }
	in := max(n(prompt), n(input))
	b.output = n(output) + n(thoughts)
	// What only the total has may be reasoning that the output leaves out.
	b.unsure = max(0, n(total)-in-n(tools)-b.output)
	b.cachedInput = min(n(cached), in)
	b.input = in - b.cachedInput + n(tools)
	b.cachedInput += n(cacheRead)
	b.cacheWrite1h = min(n(cacheWrite1h), n(cacheWrite))
	b.cacheWrite = n(cacheWrite) - b.cacheWrite1h
	// No call reads nothing, and what was read is told with what was written, if at all.
	read := max(u.n[prompt], u.n[input], u.n[total]) >= 0
	return b, read && b != billed{} && !u.bad
}

// inputs is all that was read.
func (b billed) inputs() int64 {
	return b.input + b.cachedInput + b.cacheWrite + b.cacheWrite1h + b.unsure
}

// modelNamed finds a name in a price list: as it is, or without the release that
// vendors put behind it, such as -20241022, -2024-07-18, -001 or -latest. Any other
// suffix is another model, with another price.
func modelNamed(models map[string]Model, name string) (m Model, ok bool) {
	name = strings.TrimPrefix(name, "models/") // Gemini's resource names
	if m, ok = models[name]; ok {
		return m, true
	}
	for i, c := range name {
		if (c == '-' || c == '@') && isRelease(name[i+1:]) {
			if m, ok = models[name[:i]]; ok {
				return m, true
			}
		}
	}
	return Model{}, false
}

// isRelease reports whether s is a release of a model.
func isRelease(s string) bool {
	if len(s) > len("0000-00-00") {
		return false
	}
	shape := []byte(s)
	for i, c := range shape {
		if '0' <= c && c <= '9' {
			shape[i] = '0'
		}
	}
	switch string(shape) {
	case "00000000", "0000-00-00", "000", "latest":
		return true
	}
	return false
}

package vendortest

import (
	"encoding/json"
	"strings"

	"github.com/outlay-go/outlay/budget"
)

// chat is what the fakes of LLM vendors make of a request: the words of an answer, and
// what it is billed by.
type chat struct {
	model         string
	words         []string
	input, output int64
}

// converse makes up an answer to a prompt of some text, at most limit words if limit is
// not zero. A token is four bytes of the prompt, or a word of the answer; the same
// request gets the same answer.
func (c call) converse(model string, prompt []string, limit int) chat {
	size := 0
	for _, p := range prompt {
		size += len(p)
	}
	n := 16 + int(c.id[0])%32
	if limit > 0 {
		n = min(n, limit)
	}
	a := chat{model: model, input: int64(size+3) / 4, output: int64(n)}
	for i := range n {
		a.words = append(a.words, []string{"so ", "it ", "goes "}[i%3])
	}
	return a
}

func (a chat) text() string { return strings.Join(a.words, "") }

// billTokens puts an answer on the invoice.
func (r reply) billTokens(c call, ref string, n chat) reply {
	r.line = Line{
		Ref: ref, Time: c.now, To: n.model, Units: n.input + n.output,
		Amount: c.fake.opts.Price*budget.Amount(n.input) + c.fake.opts.OutputPrice*budget.Amount(n.output),
	}
	return r
}

// event writes a server-sent event; without a name it has only data.
func event(name string, data any) string {
	b, err := json.Marshal(data)
	if err != nil {
		panic(err) // only our own values come here
	}
	s := "data: " + string(b) + "\n\n"
	if name != "" {
		s = "event: " + name + "\n" + s
	}
	return s
}

// stream makes a reply of events.
func stream(events []string) reply {
	return reply{status: 200, header: map[string]string{"Content-Type": "text/event-stream"}, parts: events}
}

// texts finds the strings in a part of a prompt, which may be one string or a list of
// objects.
func texts(v any) []string {
	var all []string
	switch v := v.(type) {
	case string:
		all = append(all, v)
	case []any:
		for _, e := range v {
			all = append(all, texts(e)...)
		}
	case map[string]any:
		for _, k := range []string{"content", "text", "parts"} {
			all = append(all, texts(v[k])...)
		}
	}
	return all
}

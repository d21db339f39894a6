package price

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"strings"

	"github.com/outlay-go/outlay/budget"
)

// maxPacked is how much of a compressed answer is kept; a longer one is not read.
const maxPacked = 256 << 10

// metering feeds a body to e, whatever its encoding, and gives the cost at its end.
func metering(resp *http.Response, e *events, cost func() (budget.Amount, bool)) (io.Writer, func() (budget.Amount, bool)) {
	switch encoding := resp.Header.Get("Content-Encoding"); {
	case encoding == "" || strings.EqualFold(encoding, "identity"):
		return e, func() (budget.Amount, bool) { e.finish(); return cost() }
	case strings.EqualFold(encoding, "gzip"), strings.EqualFold(encoding, "x-gzip"):
		p := new(packed)
		return p, func() (budget.Amount, bool) {
			whole := p.unpack(e)
			e.finish()
			a, known := cost()
			return a, known && whole
		}
	}
	return nil, func() (budget.Amount, bool) { return 0, false }
}

// packed keeps a compressed body for its end: a reader of gzip cannot be fed piece by
// piece without a goroutine.
type packed struct {
	b    bytes.Buffer
	long bool
}

// Write never fails.
func (p *packed) Write(b []byte) (int, error) {
	if p.long = p.long || p.b.Len()+len(b) > maxPacked; p.long {
		p.b = bytes.Buffer{}
	} else {
		p.b.Write(b)
	}
	return len(b), nil
}

// unpack feeds the body to w and reports whether it was whole.
func (p *packed) unpack(w io.Writer) bool {
	if p.long {
		return false
	}
	z, err := gzip.NewReader(&p.b)
	if err != nil {
		return false
	}
	_, err = io.Copy(w, io.LimitReader(z, 64*maxPacked)) // a bomb is longer
	return err == nil
}

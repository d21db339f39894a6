package gateway

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/outlay-go/outlay/budget"
)

// streamWait is how long a call may wait whose body was not read: that its caller leaves is
// not seen before.
const streamWait = 5 * time.Second

// chunk is how much memory is taken at a time for a body of unknown length.
const chunk = 32 << 10

var (
	errBodyTooLarge = errors.New("the body is larger than allowed")
	errBuffersFull  = errors.New("too many request bodies are in memory")
)

// bufferedBody is a request body in memory, counted in the gateway's buffers until it is
// released.
type bufferedBody struct {
	g    *Gateway
	size int64
	data []byte
}

// grow takes room for n more bytes.
func (b *bufferedBody) grow(n int64) error {
	if b.g.buffered.Add(n) > b.g.snap.Load().Buffers {
		b.g.buffered.Add(-n)
		return errBuffersFull
	}
	b.size += n
	return nil
}

// release gives the room back. It may be called again.
func (b *bufferedBody) release() {
	b.g.buffered.Add(-b.size)
	b.size, b.data = 0, nil
}

// releaseBody lets go of the request's body once it cannot be sent again.
func (c *call) releaseBody() {
	if c.body != nil {
		c.body.release()
		c.body = nil
	}
}

// readBody reads the body before the call waits for its turn: a slow uploader holds neither
// turn nor money, it can be priced and repeated, and net/http sees that a caller leaves only
// once its body was read. A body that is too large for that streams, once.
func (c *call) readBody() *refusal {
	r := c.req
	switch {
	case r.Body == nil || r.ContentLength == 0 && len(r.TransferEncoding) == 0:
		r.Body, r.ContentLength = http.NoBody, 0
		r.Header.Del("Expect")
		return nil
	case r.ContentLength > c.up.Body.Max:
		return bodyTooLarge(c.up)
	case r.ContentLength > c.up.Body.Buffer:
		c.passBody(nil)
		return nil
	}
	c.w.boundRead(c.up.Timeouts.BodyRead)
	defer c.w.boundRead(0)
	c.body = &bufferedBody{g: c.g}
	rest, err := c.body.read(r.Body, r.ContentLength, c.up.Body.Buffer)
	switch {
	case err != nil:
		return c.bodyRefusal(err)
	case rest:
		if int64(len(c.body.data)) > c.up.Body.Max {
			return bodyTooLarge(c.up)
		}
		c.passBody(c.body.data)
		return nil
	}
	c.bodyRead = true
	if refused := c.checkTrailers(); refused != nil {
		return refused
	}
	if len(c.snap.Callers) > 0 && c.holdsTokenIn(c.body.data) {
		return badHeader("the token of a caller stands in the body, which goes to the vendor as it is; send it in Outlay-Token, and leave its place in the body empty or fill it with the vendor's key")
	}
	c.replay()
	return nil
}

// checkTrailers refuses trailers that could be taken for a header: they come when all of
// that was looked at.
func (c *call) checkTrailers() *refusal {
	for name, values := range c.in.Trailer {
		if c.isProtected(name) || isTrace(name) || slices.Contains(overrides, name) || slices.ContainsFunc(values, c.holdsToken) {
			return badHeader("the trailer " + strings.ToValidUTF8(name, "?") + " belongs into the header")
		}
	}
	return nil
}

// read reads at most limit bytes and one more, which shows that there is a rest.
func (b *bufferedBody) read(r io.Reader, length, limit int64) (rest bool, err error) {
	if length >= 0 {
		if err := b.grow(length); err != nil {
			return false, err
		}
		b.data = make([]byte, length)
		_, err := io.ReadFull(r, b.data)
		if err == nil {
			// Only at its end does net/http begin to see that the caller leaves.
			_, err = r.Read(make([]byte, 1))
		}
		if err == io.EOF {
			err = nil
		}
		return false, err
	}
	var buf bytes.Buffer
	for {
		if err := b.grow(chunk); err != nil {
			return false, err
		}
		n, err := io.CopyN(&buf, r, min(chunk, limit+1-int64(buf.Len())))
		b.data = buf.Bytes()
		if err == io.EOF {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		if n == 0 || int64(buf.Len()) > limit {
			return true, nil
		}
	}
}

// replay lets the body be sent from memory, as often as need be. One that came in chunks
// gets a length, which some vendors want, unless it has trailers.
func (c *call) replay() {
	r, b := c.req, c.body
	r.Header.Del("Expect")
	r.TransferEncoding = nil
	r.ContentLength = int64(len(b.data))
	r.Trailer = c.in.Trailer
	if len(b.data) == 0 {
		r.Body, r.GetBody = http.NoBody, nil
		return
	}
	if len(r.Trailer) > 0 {
		r.ContentLength = -1
	}
	read := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b.data)), nil }
	r.Body, _ = read()
	if r.GetBody = read; !isPlain(r.Header) {
		r.GetBody = func() (io.ReadCloser, error) {
			if !c.begun() {
				return nil, errEncoded
			}
			return read()
		}
	}
}

var errEncoded = fmt.Errorf("%w: the body is compressed, or in a charset that is not read", budget.ErrUnpriced)

// isPlain reports whether the bytes of a body are what the vendor will read. Those of another
// coding can be made to look like a cheaper call: no price and no scope may be read off them.
func isPlain(h http.Header) bool {
	for _, v := range h["Content-Encoding"] {
		if !strings.EqualFold(v, "identity") && v != "" {
			return false
		}
	}
	kind := h.Get("Content-Type")
	_, params, err := mime.ParseMediaType(kind)
	if err != nil && strings.Contains(strings.ToLower(kind), "charset") {
		return false // the vendor may read it nevertheless
	}
	switch strings.ToLower(params["charset"]) {
	case "", "utf-8", "utf8", "us-ascii", "ascii", "iso-8859-1", "latin1", "windows-1252":
		return true
	}
	return false
}

// begun reports whether an attempt was sent: from then on the body is read to be sent again.
func (c *call) begun() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.saw.started
}

// passBody lets the body pass as it comes, once, up to its bound, after what was read of it.
func (c *call) passBody(begin []byte) {
	c.streamed = true
	c.req.Trailer = nil // nobody can look at them in time
	c.waitAtMost(streamWait)
	c.req.Body = &streamedBody{
		Reader: io.MultiReader(bytes.NewReader(begin), c.in.Body), c: c, left: c.up.Body.Max,
	}
	if len(begin) > 0 {
		c.req.ContentLength = -1
	}
}

// streamedBody bounds a body by its size, and by its pace: it must come as fast as one that
// is read before, or its call would hold a turn and a slot for as long as its caller likes.
// Time in which the vendor takes nothing does not count.
type streamedBody struct {
	io.Reader
	c    *call
	left int64
	// patience is what is left of the time for the next body.buffer bytes, which are due.
	patience time.Duration
	due      int64
}

func (b *streamedBody) Read(p []byte) (int, error) {
	if b.due <= 0 {
		b.patience, b.due = b.c.up.Timeouts.BodyRead, max(1, b.c.up.Body.Buffer)
	}
	begin := time.Now()
	b.c.w.boundRead(max(b.patience, time.Millisecond))
	n, err := b.Reader.Read(p)
	b.patience -= time.Since(begin)
	b.due -= int64(n)
	if err != nil {
		b.c.w.boundRead(0)
	}
	if b.left -= int64(n); b.left < 0 {
		b.c.fail(errBodyTooLarge)
		return 0, errBodyTooLarge
	}
	if err != nil && err != io.EOF {
		b.c.fail(err)
	}
	return n, err
}

func (b *streamedBody) Close() error { return nil } // net/http closes the caller's body

func bodyTooLarge(u *upstream) *refusal {
	return &refusal{
		status: http.StatusRequestEntityTooLarge, reason: "body_too_large",
		text: u.Name + ": " + errBodyTooLarge.Error() + " (body.max)",
	}
}

// bodyRefusal says why a body could not be read.
func (c *call) bodyRefusal(err error) *refusal {
	switch {
	case errors.Is(err, errBuffersFull):
		return &refusal{status: http.StatusServiceUnavailable, reason: "buffers_full", text: errBuffersFull.Error(), retryIn: 2 * time.Second}
	case errors.Is(err, errBodyTooLarge):
		return bodyTooLarge(c.up)
	case errors.Is(err, os.ErrDeadlineExceeded), strings.Contains(err.Error(), "i/o timeout"):
		return &refusal{status: http.StatusRequestTimeout, reason: "body_timeout", text: "the body did not come in time (timeouts.body_read)"}
	}
	return &refusal{status: http.StatusBadRequest, reason: "bad_request", text: "the body could not be read to its end"}
}

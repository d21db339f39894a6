package transport

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

const (
	// peekLimit bounds how much of a body is read to find a signal in it.
	peekLimit = 64 << 10
	// peekTime bounds for how long: a body may come slowly, or never end.
	peekTime = 2 * time.Second
)

// peekBody reads a prefix of the body and gives it back to the response byte for byte.
// It returns what came of the prefix in time, decoded, and whether that is all of the body.
// Event streams, and connections that changed their protocol, are left alone.
func peekBody(ctx context.Context, resp *http.Response) (prefix []byte, whole bool) {
	if resp.Body == http.NoBody || resp.StatusCode == http.StatusSwitchingProtocols || strings.HasPrefix(strings.ToLower(resp.Header.Get("Content-Type")), "text/event-stream") {
		return nil, resp.Body == http.NoBody
	}
	p := prefetch(resp.Body, peekLimit)
	end, stop := context.WithTimeout(ctx, peekTime)
	defer stop()
	if resp.StatusCode < 300 && resp.ContentLength < 0 && p.startsWith(end, '[') {
		stop() // a stream of values, as Gemini sends them: nothing to look for, nothing to hold up
	}
	prefix, whole = p.wait(end)
	resp.Body = p
	switch strings.ToLower(resp.Header.Get("Content-Encoding")) {
	case "gzip", "x-gzip": // RFC 9110 section 8.4.1.3: the same
	default:
		return prefix, whole
	}
	z, err := gzip.NewReader(bytes.NewReader(prefix))
	if err != nil {
		return prefix, whole
	}
	plain, err := io.ReadAll(io.LimitReader(z, peekLimit)) // a cut stream gives what it has
	return plain, whole && err == nil && len(plain) < peekLimit
}

// prefetched is a body whose first bytes are read by a goroutine, which ends when it has
// them, at the end of the body, or when the body is closed. Reads give these bytes first
// and wait for the goroutine where a plain Read would wait for the body.
type prefetched struct {
	src   io.ReadCloser
	begun chan struct{} // closed when the first byte is there
	ended chan struct{} // closed when the goroutine is done

	mu     sync.Mutex // guards what follows
	grown  sync.Cond
	buf    []byte
	off    int // given to the reader
	done   bool
	err    error
	shut   bool // by Close
	thrown any  // by src.Read, for the reader's goroutine
}

func prefetch(src io.ReadCloser, limit int) *prefetched {
	p := &prefetched{src: src, begun: make(chan struct{}), ended: make(chan struct{})}
	p.grown.L = &p.mu
	go p.fill(limit)
	return p
}

func (p *prefetched) fill(limit int) {
	defer close(p.ended)
	defer p.caught()
	chunk := make([]byte, min(limit, 4<<10))
	for n, more := 0, true; more; {
		k, err := p.src.Read(chunk[:min(len(chunk), limit-n)])
		n += k
		more = err == nil && n < limit
		p.mu.Lock()
		p.buf, p.err, p.done = append(p.buf, chunk[:k]...), err, !more
		p.grown.Broadcast()
		p.mu.Unlock()
		if n > 0 && n == k {
			close(p.begun)
		}
	}
}

// caught keeps a panic of the body for whoever reads: here it would end the program.
func (p *prefetched) caught() {
	if v := recover(); v != nil {
		p.mu.Lock()
		p.thrown, p.done, p.err = v, true, errBodyPanic
		p.grown.Broadcast()
		p.mu.Unlock()
	}
}

var errBodyPanic = errors.New("the body of the answer panicked")

// startsWith waits for the first byte, until ctx ends, and compares it.
func (p *prefetched) startsWith(ctx context.Context, c byte) bool {
	select {
	case <-p.begun:
	case <-p.ended:
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.buf) > 0 && p.buf[0] == c
}

// wait returns what has been read when ctx ends at the latest, and whether that is all.
func (p *prefetched) wait(ctx context.Context) (prefix []byte, whole bool) {
	select {
	case <-p.ended:
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return bytes.Clone(p.buf), p.done && p.err == io.EOF
}

// Read gives the prefix, then the rest.
func (p *prefetched) Read(b []byte) (int, error) {
	p.mu.Lock()
	for p.off == len(p.buf) && !p.done && !p.shut {
		p.grown.Wait()
	}
	if p.shut {
		p.mu.Unlock()
		return 0, http.ErrBodyReadAfterClose
	}
	if p.off < len(p.buf) {
		n := copy(b, p.buf[p.off:])
		p.off += n
		p.mu.Unlock()
		return n, nil
	}
	p.buf, p.off = nil, 0
	err, v := p.err, p.thrown
	p.mu.Unlock()
	if v != nil {
		panic(v)
	}
	if err != nil {
		return 0, err
	}
	return p.src.Read(b)
}

// Close closes the body, which also ends the goroutine.
func (p *prefetched) Close() error {
	p.mu.Lock()
	p.shut, p.buf, p.off = true, nil, 0
	p.grown.Broadcast()
	p.mu.Unlock()
	return p.src.Close()
}

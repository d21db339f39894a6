package price

// maxEvent is the longest event of a stream that is looked at. No vendor's usage comes
// in a longer one.
const maxEvent = 256 << 10

// events takes a body apart into JSON documents for a scanner: one or several after the
// other, or server-sent events with one in the data of each (WHATWG HTML, 9.2.6). It
// copes with any way in which the body is cut into pieces, and keeps none of it.
type events struct {
	scan scanner
	// document is called at the end of each whole JSON document, and of each event of a
	// stream: then text is the beginning of its data, and broken says that the event was
	// too long or its JSON not whole.
	document func(text []byte, broken bool)

	mode  byte // 0: nothing seen yet; 'j': JSON; 's': server-sent events
	field []byte
	data  bool // inside the value of a data field
	line  int  // bytes in the line so far
	size  int  // bytes of data in the event so far
	whole bool // the event's JSON has ended
	text  []byte
	cr    bool // the byte before was a carriage return
}

func newEvents(value func(path, raw []byte, quoted bool), document func(text []byte, broken bool)) *events {
	e := &events{document: document}
	e.scan.value = value
	e.scan.end = func() {
		if e.whole = true; e.mode == 'j' {
			e.document(nil, false)
		}
	}
	return e
}

// Write never fails.
func (e *events) Write(p []byte) (int, error) {
	n := len(p)
	for e.mode == 0 && len(p) > 0 {
		switch c := p[0]; c {
		case ' ', '\t', '\r', '\n', 0xEF, 0xBB, 0xBF: // blank, or a byte order mark
			p = p[1:]
		case '{', '[':
			e.mode = 'j'
		default:
			e.mode = 's'
		}
	}
	switch e.mode {
	case 'j':
		_, _ = e.scan.Write(p)
	case 's':
		e.stream(p)
	}
	return n, nil
}

func (e *events) stream(p []byte) {
	for len(p) > 0 {
		i := 0
		for i < len(p) && p[i] != '\n' && p[i] != '\r' {
			i++
		}
		if i > 0 {
			e.cr = false
			e.inLine(p[:i])
		}
		if i < len(p) {
			if c := p[i]; c == '\r' || !e.cr { // "\r\n" is one end, also between two writes
				e.endLine()
				e.cr = c == '\r'
			} else {
				e.cr = false
			}
			i++
		}
		p = p[i:]
	}
}

// inLine reads on in a line: first the name of the field, then, of data, its value.
func (e *events) inLine(p []byte) {
	for !e.data && len(p) > 0 && len(e.field) < len("data:") {
		e.field = append(e.field, p[0])
		e.data = string(e.field) == "data:"
		e.line++
		p = p[1:]
	}
	e.line += len(p)
	if !e.data || len(p) == 0 {
		return
	}
	e.size += len(p)
	if e.size > maxEvent {
		return
	}
	if len(e.text) < 16 {
		e.text = append(e.text, p[:min(len(p), 16)]...)
	}
	_, _ = e.scan.Write(p)
}

// endLine ends a line. An empty one ends the event.
func (e *events) endLine() {
	if e.line == 0 {
		e.endEvent()
	} else if e.data {
		_, _ = e.scan.Write([]byte{'\n'})
	}
	e.field, e.data, e.line = e.field[:0], false, 0
}

func (e *events) endEvent() {
	if e.size > 0 {
		e.document(e.text, e.size > maxEvent || !e.whole)
	}
	e.scan.reset()
	e.text, e.size, e.whole = e.text[:0], 0, false
}

// finish ends an event that no empty line ended, if its JSON is whole.
func (e *events) finish() {
	if e.mode == 's' && e.whole {
		e.endEvent()
	}
}

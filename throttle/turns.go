package throttle

// turns remembers the turns that are not done: what to give back on Cancel, which
// slots to free on Done, and from which grant on a cap counts. It is a slab with a
// free list; an id is a slot of the slab and its generation, so that an id used twice
// does nothing.
type turns struct {
	slab []turn
	free uint32 // 1 + index of the first free slot; zero: none
}

type turn struct {
	gen  uint32
	next uint32 // in the free list
	n    int32
	few  [2]share
	more []share // used when there are more legs than few holds
}

// share is what a turn has of one scope.
type share struct {
	s      *scope
	grant  uint64 // the scope's count with this turn
	at     int64  // when it started
	weight int32
	slot   bool
}

// add returns a new turn for n legs, all of them still to be set.
func (t *turns) add(n int) (uint64, []share) {
	if t.free == 0 {
		t.slab = append(t.slab, turn{})
		t.free = uint32(len(t.slab))
	}
	i := t.free - 1
	e := &t.slab[i]
	t.free = e.next
	e.n = int32(n)
	if n > cap(e.more) && n > len(e.few) {
		e.more = make([]share, n)
	}
	return uint64(e.gen)<<32 | uint64(i+1), e.shares()
}

func (e *turn) shares() []share {
	if int(e.n) > len(e.few) {
		return e.more[:e.n]
	}
	return e.few[:e.n]
}

// get returns a turn that is not done, or nil.
func (t *turns) get(id uint64) *turn {
	i := uint32(id) - 1
	if uint64(i) >= uint64(len(t.slab)) || t.slab[i].gen != uint32(id>>32) || t.slab[i].n == 0 {
		return nil
	}
	return &t.slab[i]
}

// drop forgets a turn.
func (t *turns) drop(id uint64, e *turn) {
	clear(e.shares())
	e.gen, e.next, e.n = e.gen+1, t.free, 0
	t.free = uint32(id)
}

// CancelTurn implements [Owner].
func (b *Bucket) CancelTurn(id uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.cancel(id, b.tick())
}

func (b *Bucket) cancel(id uint64, now int64) {
	e := b.turns.get(id)
	if e == nil {
		return
	}
	for _, h := range e.shares() {
		b.giveBack(h, now)
	}
	b.turns.drop(id, e)
	b.run(now)
}

// giveBack returns what a turn took, unless the bucket was emptied since.
func (b *Bucket) giveBack(h share, now int64) {
	s, x := h.s, h.s.x
	if x != nil {
		b.refresh(s, now)
		if h.slot {
			x.release(now)
		}
		if x.cap.end > 0 && h.grant > x.cap.base {
			x.cap.until++
		}
		defer b.touch(s)
	}
	if x != nil && h.grant <= x.drained {
		return
	}
	// x/time has no call that puts tokens back without a reservation, but a negative
	// AllowN does, and the burst bounds it at the next use.
	for i := range s.plan.tokens {
		s.tokens(i).AllowN(b.timeOf(now), -int(h.weight))
	}
	if x != nil {
		x.last = now
	}
	for i := range s.plan.strict {
		x.windows[i].giveBack(int(h.weight), h.at)
	}
}

// last is the instant before which the limiters of the scope must not be changed.
func (s *scope) last() int64 {
	if s.x == nil {
		return 0
	}
	return s.x.last
}

// EndTurn implements [Owner].
func (b *Bucket) EndTurn(id uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.turns.get(id)
	if e == nil {
		return
	}
	now := int64(0)
	for _, h := range e.shares() {
		if !h.slot {
			continue
		}
		if now == 0 {
			now = b.tick()
		}
		h.s.x.release(now)
		b.touch(h.s)
	}
	b.turns.drop(id, e)
	if len(b.dirty) > 0 {
		b.run(now)
	}
}

// release frees a slot.
func (x *extra) release(now int64) {
	x.inUse--
	x.freed = now
}

// grantsAt is the number of turns of the scope that had started with t, or all up to
// now if t is unknown or did not use the scope.
func (b *Bucket) grantsAt(s *scope, t Turn) (n uint64, known bool) {
	if t.owner != Owner(b) {
		return s.grants, false
	}
	e := b.turns.get(t.id)
	if e == nil {
		return s.grants, false
	}
	for _, h := range e.shares() {
		if h.s == s {
			return h.grant, true
		}
	}
	return s.grants, false
}

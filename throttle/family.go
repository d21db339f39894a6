package throttle

// overflowKey is the key of the scopes that are shared by keys beyond MaxScopes. No
// leg can have it, because the map of scopes does not hold it.
const overflowKey = "(overflow)"

// keep is how many scopes of a family are never forgotten for being idle.
const keep = 1024

// family is a ring of scopes that are bounded together: those first asked for beside
// one first leg, or the first legs.
type family struct {
	last     *scope // the hand of the sweep is at last.next
	n        int
	overflow *scope
	spilled  uint64 // asks that used the overflow scope
}

// family returns the scopes that belong to a first leg.
func (s *scope) family() *family {
	x := s.extras()
	if x.kin == nil {
		x.kin = &family{}
	}
	return x.kin
}

func (b *Bucket) maxScopes() int {
	if b.MaxScopes <= 0 {
		return defaultMaxScopes
	}
	return b.MaxScopes
}

// newScope adds a scope to the family, or returns the one that all share when there
// is no room. Scopes in uses are not forgotten for it.
func (b *Bucket) newScope(f *family, key string, uses []use, now int64) *scope {
	limit := b.maxScopes()
	f.sweep(b, 4, uses, now)
	if f.n >= limit {
		f.evict(b, 64, uses, now)
	}
	if f.n >= limit {
		f.spilled++
		if f.overflow == nil {
			f.overflow = &scope{key: overflowKey, plan: unasked}
		}
		return f.overflow
	}
	s := &scope{key: key, plan: unasked}
	if b.scopes == nil {
		b.scopes = make(map[string]*scope)
	}
	b.scopes[key] = s
	f.add(s)
	return s
}

func (f *family) add(s *scope) {
	if f.last == nil {
		s.next = s
	} else {
		s.next, f.last.next = f.last.next, s
	}
	f.last = s
	f.n++
}

// move puts a scope that was known from Cap alone into the family of the first leg that it
// is asked for beside, where [Bucket.Stats] finds it. What it leaves behind is forgotten in
// time.
func (b *Bucket) move(s *scope, f *family) *scope {
	if f.n >= b.maxScopes() {
		return s
	}
	o := &scope{key: s.key, plan: unasked, grants: s.grants, x: s.x}
	o.x.alarm.scope = o
	s.key, s.x = "", nil
	b.scopes[o.key] = o
	f.add(o)
	return o
}

// sweep forgets idle scopes among the next few, so that what was asked for once does
// not stay for ever.
func (f *family) sweep(b *Bucket, few int, uses []use, now int64) {
	if f.n > keep && !b.pinned {
		f.evict(b, few, uses, now)
	}
}

func (f *family) evict(b *Bucket, few int, uses []use, now int64) {
	for ; few > 0 && f.n > 0; few-- {
		s := f.last.next
		if usedBy(s, uses) || !b.idle(s, now) {
			f.last = s
			continue
		}
		delete(b.scopes, s.key)
		f.n--
		if f.last.next = s.next; f.n == 0 {
			f.last = nil
		}
	}
}

func usedBy(s *scope, uses []use) bool {
	for _, u := range uses {
		if u.s == s {
			return true
		}
	}
	return false
}

// idle reports whether a scope made anew would be in the same state.
func (b *Bucket) idle(s *scope, now int64) bool {
	if x := s.x; x != nil {
		if len(x.flows) > 0 {
			return false
		}
		b.refresh(s, now)
		if x.busy() {
			return false
		}
		for i := range x.windows {
			if x.windows[i].expire(now); x.windows[i].size() > 0 || now < x.windows[i].pacedTo {
				return false
			}
		}
	}
	for i, r := range s.plan.tokens {
		if s.tokens(i).TokensAt(b.timeOf(now)) < float64(r.burst()) {
			return false
		}
	}
	return true
}

// busy reports whether the scope has something to remember besides its rates.
func (x *extra) busy() bool {
	return x.gate.end > 0 || x.cap.end > 0 || x.slow.factor > 0 || x.spread.end > 0 || x.inUse > 0 ||
		x.kin != nil && (x.kin.n > 0 || x.kin.overflow != nil)
}

package throttle

import "slices"

// classes is the number of priorities. A class is an index: critical, normal, bulk.
const classes = 3

// patience is the number of turns in a row that a class with somebody ready is passed
// over before it gets one: bulk has every tenth turn at least, and a critical call
// waits for the two other classes at most.
const patience = 8

func classOf(p Priority) int {
	switch p {
	case Critical:
		return 0
	case Bulk:
		return 2
	default:
		return 1
	}
}

// group is the queue of one first leg.
type group struct {
	first *scope
	flows map[flowKey]*flow
	class [classes]class
	n     int // waiters
}

// class is the part of a queue with one priority. Tenants share it by start-time fair
// queueing: the one with the least service is next, and one that comes anew starts
// where the others are.
type class struct {
	tenants map[string]*tenant
	ready   pq[*tenant] // with a flow that could start
	idle    pq[*tenant] // without waiters, but ahead of the others
	virtual float64     // the service at which the last turn was given
	skipped int         // turns of others in a row while somebody here was ready
	n       int         // waiters, of all flows
	readyN  int64       // waiters of ready flows
	weight  int64       // what they take from the first leg
	drift   int64       // by how much forecasts got worse
	limits  pq[*limit]
}

type tenant struct {
	name    string
	c       *class
	pos     int
	service float64 // weight served
	started bool    // had a turn since it came
	ready   pq[*flow]
	n       int   // waiters
	readyN  int64 // waiters of ready flows
	weight  int64 // what they take from the first leg
}

// flowKey tells flows of one group apart: priority, tenant and the other legs.
type flowKey struct {
	class  int
	tenant string
	second *scope
	rest   string
}

// flow is a line of waiters, equal in all that decides who may start: first come,
// first served. It is ready, or parked at the leg that cannot start its head.
type flow struct {
	g          *group
	key        flowKey
	c          *class
	t          *tenant
	legs       []flowLeg
	head, tail *waiter
	n          int
	pos        int     // in t.ready or in the park
	order      float64 // in the park: the tenant's service when it came there
	parked     int     // the index of the leg; zero: ready
	woke       int     // the index of the leg whose park let it go; zero: none
	bounced    int     // times that one leg was ready but another was not
	claims     bool    // its other legs are kept for it
	limit      limit
}

type flowLeg struct {
	s      *scope
	pos    int   // in s.x.flows
	weight int64 // of all waiters
	park   *park // where the flow waits for the scope; nil for the first leg
}

// flowRef is an entry of a scope's list of flows.
type flowRef struct {
	flow *flow
	leg  int
}

// limit is the drift of the class at which a flow must be looked at again, because
// somebody in it may be too late.
type limit struct {
	f   *flow
	pos int
	at  int64
}

// park is where the flows of one group wait for a scope beside their first leg.
type park struct {
	g     *group
	refs  int // flows that may come here
	class [classes]parked
}

// parked holds the flows of one class whose next turn a scope cannot start. Only one
// at a time is let go: the others could not start either.
type parked struct {
	q       pq[*flow]
	awake   int
	skipped int // turns of others while the first here was too heavy
}

func (t *tenant) moved(to int) { t.pos = to }
func (t *tenant) before(o *tenant) bool {
	if t.service != o.service {
		return t.service < o.service
	}
	return len(t.ready) > 0 && len(o.ready) > 0 && t.ready[0].head.seq < o.ready[0].head.seq
}

func (f *flow) moved(to int) { f.pos = to }
func (f *flow) before(o *flow) bool {
	if f.order != o.order {
		return f.order < o.order
	}
	return f.head.seq < o.head.seq
}

func (l *limit) moved(to int)         { l.pos = to }
func (l *limit) before(o *limit) bool { return l.at < o.at }

// flowOf returns the flow for the legs, making it if need be.
func (b *Bucket) flowOf(uses []use, class int, tenant string) *flow {
	first := uses[0].s
	g := first.extras().group
	if g == nil {
		g = &group{first: first, flows: map[flowKey]*flow{}}
		first.x.group = g
	}
	key := flowKey{class: class, tenant: tenant}
	if len(uses) > 1 {
		key.second = uses[1].s
	}
	if len(uses) > 2 {
		key.rest = restKey(uses[2:])
	}
	if f := g.flows[key]; f != nil {
		return f
	}
	return g.newFlow(key, uses)
}

func restKey(uses []use) string {
	n := 0
	for _, u := range uses {
		n += len(u.s.key) + 1
	}
	k := make([]byte, 0, n)
	for _, u := range uses {
		k = append(append(k, u.s.key...), 0)
	}
	return string(k)
}

func (g *group) newFlow(key flowKey, uses []use) *flow {
	c := &g.class[key.class]
	f := &flow{g: g, key: key, c: c, t: c.tenant(key.tenant), legs: make([]flowLeg, len(uses)), pos: -1}
	f.limit = limit{f: f, pos: -1, at: forever}
	for i, u := range uses {
		x := u.s.extras()
		f.legs[i] = flowLeg{s: u.s, pos: len(x.flows)}
		x.flows = append(x.flows, flowRef{f, i})
		if i > 0 {
			f.legs[i].park = x.parkOf(g)
			f.legs[i].park.refs++
		}
	}
	g.flows[key] = f
	c.limits.push(&f.limit)
	return f
}

// parkOf returns the park of the group, making it if need be.
func (x *extra) parkOf(g *group) *park {
	for _, p := range x.parks {
		if p.g == g {
			return p
		}
	}
	x.parks = append(x.parks, &park{g: g})
	return x.parks[len(x.parks)-1]
}

// tenant returns the tenant of the name, who starts where the others are.
func (c *class) tenant(name string) *tenant {
	t := c.tenants[name]
	if t == nil {
		t = &tenant{name: name, c: c, pos: -1}
		if c.tenants == nil {
			c.tenants = map[string]*tenant{}
		}
		c.tenants[name] = t
	}
	if t.n == 0 {
		if t.pos >= 0 {
			c.idle.remove(t.pos)
		}
		t.service = max(t.service, c.virtual)
		t.started = false
	}
	return t
}

// drop removes a flow without waiters, and its tenant and group if they have none.
func (f *flow) drop() {
	for _, l := range f.legs {
		x := l.s.x
		last := len(x.flows) - 1
		moved := x.flows[last]
		x.flows[l.pos] = moved
		moved.flow.legs[moved.leg].pos = l.pos
		x.flows[last] = flowRef{}
		x.flows = x.flows[:last]
		if p := l.park; p != nil {
			if p.refs--; p.refs == 0 {
				x.parks = slices.DeleteFunc(x.parks, func(o *park) bool { return o == p })
			}
		}
	}
	f.c.limits.remove(f.limit.pos)
	delete(f.g.flows, f.key)
	if f.t.n == 0 {
		f.c.leave(f.t)
	}
	if f.g.n == 0 {
		f.g.first.x.group = nil
	}
}

// leave forgets a tenant without waiters once it is not ahead of the others; with the
// last waiter of the class all are forgotten.
func (c *class) leave(t *tenant) {
	if c.n == 0 {
		c.tenants, c.idle, c.virtual, c.skipped = nil, nil, 0, 0
		return
	}
	if t.service <= c.virtual {
		delete(c.tenants, t.name)
		return
	}
	c.idle.push(t)
}

// served charges a turn to the tenant.
func (c *class) served(t *tenant, weight int) {
	c.virtual = max(c.virtual, t.service)
	if !t.started {
		// A stream of ever new tenants must not stop the clock for the others.
		t.started = true
		c.virtual += float64(weight) / float64(len(c.ready)+1)
	}
	t.service += float64(weight)
	for len(c.idle) > 0 && c.idle[0].service <= c.virtual {
		gone := c.idle[0]
		c.idle.remove(0)
		delete(c.tenants, gone.name)
	}
}

// pick returns the flow whose head is next: of the first class, or of one that was
// passed over too often; of the tenant with the least service; the oldest.
func (g *group) pick() *flow {
	next := -1
	for i := range g.class {
		c := &g.class[i]
		if len(c.ready) == 0 {
			continue
		}
		if next < 0 || c.skipped >= patience && c.skipped > g.class[next].skipped {
			next = i
		}
	}
	if next < 0 {
		return nil
	}
	return g.class[next].ready[0].ready[0]
}

// turned counts a turn of one class against the patience of the others.
func (g *group) turned(of *class) {
	for i := range g.class {
		if c := &g.class[i]; c == of {
			c.skipped = 0
		} else if len(c.ready) > 0 {
			c.skipped++
		}
	}
}

// setReady puts the flow among those that may be picked.
func (f *flow) setReady() {
	f.parked, f.order = 0, 0
	t, c := f.t, f.c
	if len(t.ready) == 0 {
		t.service = max(t.service, c.virtual)
	}
	t.ready.push(f)
	f.count(int64(f.n), f.legs[0].weight)
	if t.pos < 0 {
		c.ready.push(t)
		return
	}
	c.ready.fix(t.pos)
}

// unready takes the flow from those that may be picked.
func (f *flow) unready() {
	t, c := f.t, f.c
	t.ready.remove(f.pos)
	f.count(-int64(f.n), -f.legs[0].weight)
	if len(t.ready) == 0 {
		c.ready.remove(t.pos)
		return
	}
	c.ready.fix(t.pos)
}

// count adds to what is ready.
func (f *flow) count(n, weight int64) {
	f.t.readyN += n
	f.t.weight += weight
	f.c.readyN += n
	f.c.weight += weight
}

// park moves the flow to the leg that cannot start its head.
func (b *Bucket) park(f *flow, leg int) {
	b.sleepAgain(f)
	f.parked, f.order = leg, f.t.service
	f.legs[leg].park.class[f.key.class].q.push(f)
	b.touch(f.legs[leg].s)
}

// unpark takes the flow from the leg where it is parked.
func (f *flow) unpark() {
	p := &f.legs[f.parked].park.class[f.key.class]
	p.q.remove(f.pos)
	if len(p.q) == 0 {
		p.skipped = 0
	}
}

// sleepAgain says that the scope that let the flow go may let the next one go.
func (b *Bucket) sleepAgain(f *flow) {
	if f.woke == 0 {
		return
	}
	l := &f.legs[f.woke]
	f.woke = 0
	l.park.class[f.key.class].awake--
	b.touch(l.s)
}

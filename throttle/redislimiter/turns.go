package redislimiter

import (
	"slices"
	"strings"

	"github.com/outlay-go/outlay/throttle"
)

// remember keeps a turn until it is cancelled or done.
func (l *Limiter) remember(t *taken) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seq++
	l.turns[l.seq] = t
	return l.seq
}

func (l *Limiter) number() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seq++
	return l.seq
}

func (l *Limiter) find(t throttle.Turn) *taken {
	l.mu.Lock()
	defer l.mu.Unlock()
	if known := l.turns[t.ID()]; t == throttle.NewTurn(l, t.ID()) {
		return known
	}
	return nil
}

func (l *Limiter) forget(id uint64) *taken {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.turns[id]
	delete(l.turns, id)
	return t
}

// CancelTurn implements [throttle.Owner].
func (l *Limiter) CancelTurn(id uint64) {
	t := l.forget(id)
	if t == nil {
		return
	}
	defer t.local.Cancel()
	l.giveBack(t, 1)
}

// EndTurn implements [throttle.Owner].
func (l *Limiter) EndTurn(id uint64) {
	if t := l.forget(id); t != nil {
		t.local.Done()
	}
}

// Set implements [throttle.Tuner].
func (l *Limiter) Set(leg throttle.Leg) error {
	if err := l.local.Set(leg); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if sc := l.scopes[leg.Key]; sc != nil && !slices.Equal(sc.rates, leg.Rates) {
		sc.rates = slices.Clone(leg.Rates)
		l.change(sc)
	}
	return nil
}

// Adjust implements [throttle.Tuner].
func (l *Limiter) Adjust(turn throttle.Turn, key string, weight int) {
	t := l.find(turn)
	if t == nil || weight < 0 {
		return
	}
	l.mu.Lock()
	i := slices.IndexFunc(t.legs, func(leg throttle.Leg) bool { return leg.Key == key })
	var leg throttle.Leg
	if i >= 0 {
		leg = t.legs[i]
		t.legs = slices.Clone(t.legs)
		t.legs[i].Weight = weight
	}
	l.mu.Unlock()
	if i < 0 {
		return
	}
	l.local.Adjust(t.local, key, weight)
	leg.Weight = max(1, leg.Weight) - weight
	l.back(t, []throttle.Leg{leg}, 0)
}

// Stats implements [throttle.Informer]: queue and slots are those of this process.
func (l *Limiter) Stats(firstKey string) throttle.Stats {
	st := l.local.Stats(firstKey)
	st.Scopes = slices.DeleteFunc(st.Scopes, func(s throttle.ScopeStats) bool { return strings.HasPrefix(s.Key, holdPrefix) })
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range st.Scopes {
		if sc := l.scopes[st.Scopes[i].Key]; sc != nil {
			st.Scopes[i].Waiting += sc.waits
		}
	}
	return st
}

// Forecast implements [throttle.Informer]. It asks nobody: other processes may be ahead.
func (l *Limiter) Forecast(a throttle.Ask) (throttle.Forecast, error) {
	if err := a.Validate(); err != nil {
		return throttle.Forecast{}, err
	}
	legs := a.Legs
	id := string(appendSet(nil, legs))
	a.Legs = append(slices.Clone(legs), throttle.Leg{Key: holdPrefix + id})
	f, err := l.local.Forecast(a)
	l.mu.Lock()
	s := l.sets[id]
	l.mu.Unlock()
	if f.Cause == throttle.ReasonGate && l.held(s) && !l.shut(legs) {
		f.Cause = throttle.ReasonRate
	}
	return f, l.reason(err, s, legs)
}

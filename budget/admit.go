package budget

// Refusal returns the error with which a ledger refuses a hold of need on this
// budget, or nil if it fits: everything used and need together must not pass the
// limit, nor, unless the call is critical, the part of it that Keep leaves to others.
// A hold of nothing always fits. All ledgers admit by this rule.
//
// Provider is left to the caller, and Budget.Monitor and Frozen are not looked at.
// RetryAt is the end of the window; for a rolling period, which frees money bucket by
// bucket, the ledger knows better.
func (t Totals) Refusal(need Amount, critical bool) *ExceededError {
	top := t.top(critical)
	if need == 0 || fits(t.Used(), need, top) {
		return nil
	}
	e := &ExceededError{
		Budget: t.Budget.Label, Window: t.Window.ID, Unit: t.Budget.Unit,
		Need: need, Used: t.Used(), Held: t.Held, Limit: t.Limit,
		Reason: ReasonExhausted,
	}
	spent := t.Settled + t.Presumed
	switch {
	case fits(spent, need, top):
		e.Reason, e.Busy = ReasonBusy, true
	case fits(spent, need, t.Limit):
		e.Reason = ReasonFloor
	}
	if fits(0, need, top) {
		e.RetryAt = t.Window.End
	}
	return e
}

// top is what the call may fill the window up to.
func (t *Totals) top(critical bool) Amount {
	if critical {
		return t.Limit
	}
	return t.Limit - t.Budget.Keep
}

// fits reports whether used + need <= top. Only top may be negative.
func fits(used, need, top Amount) bool { return used <= top && need <= top-used }

// Binding returns the refusal that matters of two legs of one hold: the one that
// lasts. A call that never fits comes first, then what is spent before what only
// calls in flight hold, then the later end; else it is e. Either may be nil.
func (e *ExceededError) Binding(other *ExceededError) *ExceededError {
	switch {
	case e == nil:
		return other
	case other == nil:
		return e
	}
	never, otherNever := e.RetryAt.IsZero(), other.RetryAt.IsZero()
	later := other.RetryAt.After(e.RetryAt)
	if never != otherNever {
		later = otherNever
	} else if e.Busy != other.Busy {
		later = e.Busy
	}
	if later {
		return other
	}
	return e
}

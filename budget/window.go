package budget

import "time"

// Period is how long a window of a budget lasts.
type Period struct {
	kind    uint8
	at      time.Duration
	from    int
	rolling time.Duration
}

// Window is one period of a budget, from Start (included) to End (not included).
type Window struct {
	ID         string
	Start, End time.Time
}

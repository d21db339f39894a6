// Package redislimiter is a [throttle.Limiter] that many processes share through Redis or
// Valkey (6.2 or later): a single server, Sentinel or a cluster. The client is the user's:
//
//	client := redis.NewClient(&redis.Options{Addr: "redis:6379"})
//	limiter, err := redislimiter.New(client, redislimiter.Options{})
//	if err != nil {
//		return err
//	}
//	defer limiter.Close()
//
// # What is shared
//
// Rates, strict windows, gates, caps and effective rates are those of all processes
// together: one script per decision takes a turn on all legs or on none, by the server's
// clock. Slots, priorities and fair turns are those of each process: its calls queue in a
// [throttle.Bucket] first, and the head of the queue asks. A turn may lie up to a second
// ahead, so nobody polls. All keys of one provider are in one slot of a cluster, and
// providers spread over it.
//
// Above 50 turns per second, unless a window is strict, turns are taken in batches while
// calls come fast: a twentieth of a second's turns at most, valid for one second. What is
// left of them goes back with the next question or with Close; within that second
// processes that use a batch late may start turns faster than the rate.
//
// A strict window of more than 1,024 turns is counted in groups that leave together, so
// that it admits a little less than it might, and a turn of it that is cancelled counts
// as used.
//
// A gate that one process closes is told to all by a message and stops them within
// milliseconds. Should messages be lost, it stops them with their next question, which is
// at most one second away.
//
// # What each failure costs at worst
//
//	what happens            what it costs at worst
//	Redis is away           ErrUnavailable, after 250 ms at first and at once then; with
//	                        throttle.Fallback a local share of the rates
//	an answer is lost       the turn counts as used
//	a process dies          the turns of its batch count as used; its slots were its own
//	a process is stopped    the turns it had taken are used late, when it goes on
//	failover, flush         full buckets and open gates once more; processes that know
//	                        of a gate keep it
//	a clock is wrong        nothing: the server's decides; if that is set back, gates and
//	                        strict windows last that much longer
//
// # Keys
//
// All keys begin with "prefix:{provider}:" and expire when a scope is as good as new. Keys
// of scopes that are not short and plain appear as hashes, made with Options.HashKey.
package redislimiter

// Package redisledger is a [budget.Ledger] that many machines share through Redis or
// Valkey (6.2 or later): a single server, Sentinel or a cluster. The client is the
// user's:
//
//	client := redis.NewClient(&redis.Options{Addr: "redis:6379"})
//	ledger, err := redisledger.New(client, redisledger.Options{})
//	if err != nil {
//		return err
//	}
//	defer ledger.Close()
//
// # What it promises
//
// A hold is one script: all legs or none, exactly, on the server's clock. It takes work
// in proportion to the legs, whatever the number of open holds. When Hold returns, Redis
// has acknowledged it; how well it keeps that is a matter of its settings. If Redis keeps
// acknowledged writes, no more than the limit is ever spent. Operations are known by
// their ids, since the client sends a command again when the answer was lost.
//
// A call waits for one round trip, its hold. An outcome that costs no more than its hold
// goes behind, with others or with the next hold; other instances see it then. What is
// frozen stays so while Redis is away and when it has lost its books, and so do limits that
// people set, as far as an instance knew of it: two seconds ago at worst.
//
// No timer gives money back. An instance says every two seconds that it is alive; what
// one holds that was silent for fifteen counts as spent, until there is evidence. An
// instance that was only stopped and goes on still brings that evidence.
//
// # What Redis can lose
//
// Set maxmemory-policy noeviction and appendonly yes: New notes what is not so, in the
// first report's notices, or fails with [Options.Durable]. With appendfsync everysec a
// crash of the server loses about a second, a failover what the replica did not have, and
// a flush everything. Each instance knows what it did and notices the loss with its next
// command, or within two seconds. Then nothing is granted for [Options.Learn], while the
// instances that are alive report their holds in flight, their last outcomes and what they
// have spent in each window. What they had presumed is settled then, since its holds are
// gone.
//
//	what happens                    what it costs at worst
//	Redis is away                   holds are refused, or spend what Options.Outage held in
//	                                advance; outcomes wait in memory, 100,000 of them
//	an answer is lost               nothing: the hold is voided, or was resolved already
//	an instance dies                what it had in flight counts as spent, and so do the
//	                                holds whose outcomes were on their way
//	an instance is stopped          the same, until it goes on
//	Redis restarts with its file    about a second of writes, reported again
//	failover, flush, an old file    what instances spent that died before they could report
//	                                it may be spent once more; Options.Learn without grants
//	a window is evicted             the same; if nobody knows of it, holds are refused until
//	                                an operator releases the budget
//	a clock is wrong                nothing: the server's decides
//
// # Keys
//
// All keys begin with "prefix:{name}:" and are in one slot of a cluster. They hold names
// of budgets and providers and ids of holds, nothing of a request. Ended holds are known
// for 15 minutes, presumed ones for 35 days after their windows, totals for 400 days, and
// those of rolling periods shorter than nine days for a thousand buckets. A cost that
// comes later is added to the key "unattributed". The keys "generation", "owners" and
// "log" (what people did, the last 10,000) stay. The key "windows" lists the windows whose
// totals are known, 100,000 of them.
//
// An open hold takes about 380 bytes, an ended one 290 for as long as it is known, and an
// instance about 40 in each window (Redis 7.0, 2026).
//
// # History
//
// A budget that somebody asked for with History or Spending, as a status page does, is
// remembered from then on by all instances: a key "tally" for each of its windows has what
// was booked in each of 96 parts and by each of 64 providers, 12 KiB at most, until 35 days
// after the window. Its holds and outcomes write that in the script that books them, with
// no round trip more. The books do not depend on it, nor on "log" and "windows": when Redis
// loses its books, instances report what they spent but not when and by which provider,
// and what people did is lost. That Redis lost it can be seen in [budget.History.Since].
package redisledger

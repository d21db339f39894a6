package transport

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/throttle"
	"github.com/outlay-go/outlay/transport/dialect"
)

// NoWait as a MaxWait means: start now or fail.
const NoWait time.Duration = -1

// defaultMaxWait is finite because several SDKs build their requests on a background
// context, so that no deadline would ever end the wait.
const defaultMaxWait = time.Minute

// Config is everything a [Transport] needs. It is a plain value; [New] validates and
// copies it.
type Config struct {
	// Base sends the attempts. Nil: http.DefaultTransport. Each of its RoundTrips must be
	// one transmission: a Base that tries a second way by itself is not seen doing so, and
	// the vendor bills twice what was paid once. That is why the requests of a provider with
	// budgets have no GetBody: a Base must not ask for the body again.
	Base http.RoundTripper
	// TracedBase says that Base reports every connection it uses to net/http/httptrace, as
	// *http.Transport (for which it need not be said) and plain wrappers around one do.
	// Then a call that ends while it is still connecting is known not to be sent.
	TracedBase bool
	// Providers are the billed APIs. Which one a request belongs to is decided by
	// their patterns.
	Providers []Provider
	// Ledger keeps the books. It may be nil only if no budget is set anywhere.
	Ledger budget.Ledger
	// Limiter hands out turns. Nil: a [throttle.Bucket], which knows this process alone.
	Limiter throttle.Limiter
	// Budgets hold for all providers together, beside the budgets of each.
	Budgets []budget.Budget
	// MaxWait bounds all waiting of one call: in the queue, for a gate and between
	// attempts, over all attempts. Zero: one minute. [NoWait]: start now or fail.
	MaxWait time.Duration
	// Unmatched says what happens to requests that belong to no provider.
	Unmatched Unmatched
	// OnEvent is told everything that happens; see [Event]. Nil: no event is built. It is
	// called by many goroutines at once: that of the call, and, when a context ends or a
	// response was dropped, one of the runtime's. It must be fast and must not panic there.
	OnEvent func(context.Context, Event)
	// AttemptInContext lets Base find the provider and the number of the attempt by
	// [AttemptFrom]. It costs an allocation per attempt.
	AttemptInContext bool
}

// Provider is one billed API as we treat it. The zero value of every field but Name
// and Match is usable. Its functions, and those of its scopes, are called by many
// goroutines at once, before anything is sent.
type Provider struct {
	// Name appears in errors, events and metrics.
	Name string
	// Match lists what belongs to the provider: patterns as of [http.ServeMux],
	// "[METHOD ]host[/path]", with these differences: a host is required, a host alone
	// means host/, and a host may begin with "*." for every name below it. Ports and
	// the case of the host do not count.
	Match []string
	// Rates must all admit an attempt. Empty: no rate.
	Rates []throttle.Rate
	// MaxInFlight bounds the calls whose body has not ended. Zero: no bound.
	MaxInFlight int
	// Scopes are parts of the provider with limits of their own.
	Scopes []Scope
	// Weight is what an attempt takes from every rate of the provider. Nil: 1.
	Weight func(*http.Request) int
	// MaxWait replaces Config.MaxWait for this provider unless it is zero.
	MaxWait time.Duration
	// Priority and Tenant order the queue, for SDKs that drop the context. Nil: what
	// [WithPriority] and [WithTenant] put into the context, else Normal and no tenant.
	Priority func(*http.Request) throttle.Priority
	Tenant   func(*http.Request) string
	// Dialect reads the answers. Nil: [dialect.Standard].
	Dialect dialect.Dialect
	// QuotaZone is the zone in which the provider's daily quota ends at midnight, for
	// answers that say a quota is used up but not until when. Nil: not known; such a
	// provider is left alone for ten minutes at a time.
	QuotaZone *time.Location
	// Price says what an attempt may cost. It is required while a money budget
	// applies; price.Free is a price.
	Price Pricer
	// Budgets pay for the attempts, all or none.
	Budgets []budget.Budget
	// BudgetsFor adds budgets by request: per tenant, per destination. Their names may
	// hold what is private; they are stored as keyed hashes.
	BudgetsFor func(*http.Request, budget.Quote) []budget.Budget
	// Retry says when an attempt is repeated.
	Retry Retry
	// Repeat refuses the same call made too often.
	Repeat Repeat
	// IdempotencyHeader is the header by which the provider recognises a repeated
	// request. If set, a key is made once per call (unless the request brings one) and
	// is the same on every attempt, which makes a retry after an unknown outcome safe.
	// Set it only if the provider documents it.
	IdempotencyHeader string
	// FixedRate keeps the configured rate even if the provider throttles without a
	// hint; else the effective rate goes down and slowly comes back.
	FixedRate bool
	// Monitor never waits and never refuses; it records what it would have done. An
	// operator's freeze still refuses.
	Monitor bool
	// ScopeAlias gives the name under which a scope key may be shown. Nil: a hash.
	ScopeAlias func(key string) string
	// Refusal, if set, turns a refusal into a response in the vendor's own error
	// shape, for SDKs that repeat every transport error and cannot be told not to. A
	// zero status leaves it an error.
	Refusal func(Refused) (status int, h http.Header, body []byte)
}

// Scope is a part of a provider with limits of its own beside the provider's: a sender
// number, an API key, a route, a tenant.
type Scope struct {
	// Name is the scope's name in the configuration, and how a dialect refers to it.
	Name string
	// Key says which one a request uses. Nil: there is one for all. Empty: the request
	// uses none of this scope. Keys are stored as keyed hashes and never shown.
	Key func(*http.Request) string
	// Rates hold for each key.
	Rates []throttle.Rate
	// RatesFor gives some keys other rates, such as plans. Nil result: Rates.
	RatesFor func(key string) []throttle.Rate
	// Weight is what an attempt takes from the scope's rates. Nil: 1.
	Weight func(*http.Request) int
	// Units makes the units of the quote, such as tokens, the weight: an upper bound at
	// first, corrected once the answer told how many there were. It replaces Weight. The rates
	// need a Burst of at least one call's bound.
	Units bool
	// Max bounds the calls in flight of each key. Zero: no bound.
	Max int
}

// Retry says when an attempt is repeated. The zero value is the default.
type Retry struct {
	// Attempts in all, the first included. Zero: 3. One: never repeat.
	Attempts int
	// MaxRetryAfter bounds one wait that the provider asks for. Zero: what is left of
	// MaxWait, which bounds it as well: above a minute MaxWait must be set. Beyond it
	// nothing is clamped: the provider's answer is returned.
	MaxRetryAfter time.Duration
	// Backoff is the first ceiling of our own waits, which double up to a minute; each
	// wait is drawn between 100 ms and its ceiling, and is no shorter than the one before.
	// Zero: 500 ms.
	Backoff time.Duration
	// Share bounds retries to a share, in percent, of the last minute's calls (but at
	// least 10 a minute are allowed). Zero: 20.
	Share int
	// NotTaken lists statuses by which the provider says that it did not take the
	// request: nothing was billed, and repeating is safe.
	NotTaken []int
	// Unknown says which calls may be repeated when an attempt's outcome is unknown: no
	// answer came after it was sent, or a 500, 502, 503 or 504. Each attempt may then be
	// billed, and each is paid for.
	Unknown Replay
}

// Replay says which calls may be repeated although an attempt may have been billed.
type Replay uint8

// The values of [Retry.Unknown].
const (
	// ReplayNever repeats none without an idempotency key, but for a call that ReplaySafe
	// names and that was answered by 503 without Retry-After; the default.
	ReplayNever Replay = iota
	ReplaySafe         // GET, HEAD, OPTIONS and TRACE
	ReplayAll          // all of them
)

// Unmatched says what happens to requests that belong to no provider.
type Unmatched uint8

// The values of [Config.Unmatched].
const (
	// PassUnknownHosts passes hosts that no pattern names, and refuses requests to a
	// host that some pattern names but no pattern matches.
	PassUnknownHosts Unmatched = iota
	// PassAll passes everything.
	PassAll
	// RefuseAll refuses everything.
	RefuseAll
)

// Pricer says what a request may cost, before it is sent. It may be called from
// several goroutines, and more than once per call.
//
// Two methods are optional, and looked at by [New]: Unit() string, the currency, which
// must be that of the budgets, and Validate() error, which says why the price is wrong.
type Pricer interface {
	// Quote returns an upper bound. It reads a body only through req.GetBody. An error
	// that wraps [budget.ErrUnpriced] says that no rule fits.
	Quote(req *http.Request) (budget.Quote, error)
}

// Metered is a [Pricer] that learns the real cost from the answer.
type Metered interface {
	// Meter returns a writer that is fed the body as it passes, and a function that
	// tells the cost afterwards. If known is false, a is a floor. Nil, nil: the quote
	// is the cost. If w has a method Units() (n int64, known bool), that is how many units
	// the answer really contained, for scopes that count them. A meter must bound its
	// memory and must not keep resp, and its writer must not fail. Meter is called by many
	// goroutines at once, what it returns by one at a time.
	Meter(resp *http.Response) (w io.Writer, cost func() (a budget.Amount, known bool))
}

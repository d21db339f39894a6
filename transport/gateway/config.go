package gateway

import (
	"context"
	"crypto/sha256"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/throttle"
	"github.com/outlay-go/outlay/transport"
)

// Config is what a [Gateway] serves. It is a plain value; [New] and [Gateway.Reload]
// validate it and name every wrong field by its path. [Load] makes one of a file.
type Config struct {
	// Providers are the APIs that can be reached, and nothing else can.
	Providers []Provider
	// Budgets hold for all providers together, beside the budgets of each.
	Budgets []budget.Budget
	// Callers are the programs that may call. The one named "local" is whoever comes
	// without a token, where a listener lets them in; if there is none, such callers may
	// use every provider and set nothing.
	Callers []Caller
	// TenantHeader is the request header in which a caller that may set it names the
	// tenant. Empty: Outlay-Tenant.
	TenantHeader string
	// DefaultTenant is the tenant of calls that name none.
	DefaultTenant string
	// Hosts are the names under which programs may call, beside localhost and the
	// addresses of the listeners. Any other Host is refused, since a web page can make a
	// browser send requests to this machine under a name of its own.
	Hosts []string
	// Buffers bounds the request bodies in memory, of all callers together, in bytes.
	// Zero: 256 MiB.
	Buffers int64
	// MaxWait bounds the waiting of a call where its provider does not say. Zero: 20 s,
	// since callers have timeouts of their own.
	MaxWait time.Duration
	// HideOutlay drops the headers Outlay-Provider, Outlay-Waited-Ms, Outlay-Attempts and
	// Outlay-Call from answers of providers.
	HideOutlay bool
	// Source says where the configuration came from, such as a file's name and hash. It
	// stands in the log.
	Source string
}

// Provider is one API behind the gateway.
type Provider struct {
	// Provider says what is metered and how. Its Match stays empty: the gateway fills it in.
	transport.Provider
	// Path is the first segment of the paths below which the provider is found. Empty: Name.
	Path string
	// Upstream is where calls go: scheme, host, and perhaps a path to put before theirs.
	// Price and Scopes see the whole path.
	Upstream *url.URL
	// Routes are the patterns "[METHOD ]/path", as of [http.ServeMux], that may be called.
	// Empty: all paths. What the provider's Price does not know is refused in any case
	// while a budget of money applies.
	Routes []string
	// Credential is put into every call. The zero value lets the program's own key pass.
	Credential Credential
	// Slots are the places in which the SDKs of this vendor carry their key, beside the
	// usual ones. With a Credential they may hold a caller's token, and are emptied.
	Slots []Slot
	// QueryKeys are the query parameters that a decision (price, scope) reads: each must
	// parse and stand once, or the vendor might read another value than was priced.
	QueryKeys []string
	// HeaderKeys are the request headers that a decision reads: a call in which one stands
	// more than once is refused.
	HeaderKeys []string
	// AllowPrivate lets the upstream's name resolve to a loopback, private or link-local
	// address.
	AllowPrivate bool
	// Timeouts of one attempt.
	Timeouts Timeouts
	// Body bounds request bodies.
	Body Body
	// OnDisconnect says what becomes of a call whose caller has left after it was sent.
	OnDisconnect Disconnect
	// Upgrades lets 101 answers (websockets) pass. They are one call, whatever is said on
	// them, so that they are refused by default.
	Upgrades bool
	// MoneyStatus is the status of a refusal for money. Zero: that of the Refusal, or 402.
	MoneyStatus int
	// Stopped refuses every call, before anything else is asked.
	Stopped bool
}

// Credential is the real key of a provider and where it belongs. The secret is a function
// so that a rotated one counts from the next reload on, and so that no %v prints it.
type Credential struct {
	// Slot is where the secret goes. The zero Slot: there is none.
	Slot Slot
	// User is the user name of a Basic credential.
	User string
	// Secret returns the secret.
	Secret func() string
}

// Slot is a place of a request that carries a credential.
type Slot struct {
	// In is the kind of place.
	In Place
	// Name is that of the header or the query parameter.
	Name string
}

// Place is a kind of [Slot].
type Place uint8

// The kinds of places.
const (
	InNone   Place = iota
	InBearer       // Authorization: Bearer
	InBasic        // Authorization: Basic; the token may be the user or the password
	InHeader       // a header of its own
	InQuery        // a query parameter
)

// Timeouts bound the parts of one attempt. Zero values are the defaults.
type Timeouts struct {
	Connect     time.Duration // to dial; 5 s
	TLS         time.Duration // for the handshake; 5 s
	Response    time.Duration // from the request's end to the answer's header; 60 s
	Idle        time.Duration // between two pieces of the answer's body; 5 min
	BodyRead    time.Duration // for the caller to send its body, or Body.Buffer of one that streams; 30 s
	ClientWrite time.Duration // for the caller to take a piece of the answer; 60 s
}

// Body bounds request bodies, in bytes. Zero values are the defaults.
type Body struct {
	// Buffer is how much is read before the call waits for its turn, to be priced and
	// repeated. Zero: 1 MiB. A larger body streams, once and without trailers, waits 5 s
	// at the most, and is refused if its price cannot be told without it.
	Buffer int64
	// Max is the largest body. Zero: 32 MiB.
	Max int64
}

// Disconnect says what becomes of a call whose caller has left after it was sent.
// A call that still waits leaves the queue in any case, and nothing is charged.
type Disconnect uint8

// The values of [Provider.OnDisconnect].
const (
	// AutoDisconnect cancels an event stream, which stops its cost, and finishes anything
	// else for up to 30 s, to learn what it cost.
	AutoDisconnect Disconnect = iota
	CancelOnDisconnect
	FinishOnDisconnect
)

// Caller is a program that may call.
type Caller struct {
	Name string
	// TokenSHA256 is the hash of its token, of 16 to 256 letters, digits, dots, dashes and
	// underscores. The zero value: it has none, and cannot call (unless it is "local").
	TokenSHA256 [sha256.Size]byte
	// Providers are those it may use, by name. Empty: all.
	Providers []string
	// Tenant is the tenant of its calls. Empty: that of the header, or the default.
	Tenant string
	// Priority is that of its calls.
	Priority throttle.Priority
	// MaySet lists what its requests may say themselves: "tenant", "priority", "max_wait".
	// Saying it without leave is refused: ignored, the spend would be on the wrong tenant.
	MaySet []string
}

// Parts are what a gateway is made with and keeps for its life.
type Parts struct {
	// Ledger keeps the books. Required if there is a budget.
	Ledger budget.Ledger
	// Limiter hands out turns. Nil: this process alone.
	Limiter throttle.Limiter
	// OnEvent is told what happens, as in [transport.Config].
	OnEvent func(context.Context, transport.Event)
	// Log is told what the gateway itself does: one line per call at Info, refusals at
	// Warn. Nil: nothing is logged.
	Log *slog.Logger
	// Base sends the attempts in place of the gateway's own connections, for tests and
	// wrappers around them. It is given the upstream's real URL. Nil: the gateway's own.
	Base http.RoundTripper
}

// Listener is one way in.
type Listener struct {
	// Provider, if set, is the one whose calls come in here, without a path before theirs:
	// some SDKs keep only host and port of a base URL.
	Provider string
	// Token says that every caller must show one.
	Token bool
}

// identity is who a call belongs to. The hooks of providers (plans of tenants) read it
// from the request's context.
type identity struct {
	caller string
	tenant string
}

type identityKey struct{}

// identityOf returns who the call with this context belongs to.
func identityOf(ctx context.Context) identity {
	id, _ := ctx.Value(identityKey{}).(identity)
	return id
}

// TenantOf returns the tenant of a call on its way through a gateway, for the functions
// of a [transport.Provider] that take a request.
func TenantOf(r *http.Request) string { return identityOf(r.Context()).tenant }

package price_test

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/budget/price"
)

const (
	form     = "application/x-www-form-urlencoded"
	jsonType = "application/json"
)

func post(t testing.TB, contentType, url, body string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	require.NoError(t, err)
	r.Header.Set("Content-Type", contentType)
	return r
}

// bodyPricers read bodies, each in its own way, and can price the body beside them.
var bodyPricers = []struct {
	name, contentType, body string
	pricer                  price.Pricer
}{
	{"form", form, "To=%2B1555&Body=hi", price.SMS{Segment: cent}},
	{"json", jsonType, `{"to":"+1555","text":"hi"}`, price.SMS{Segment: cent}},
	{"matrix", jsonType, `{"origins":[1],"destinations":[1]}`, price.Per(cent, price.Cells("origins", "destinations"))},
	{"tokens", jsonType, `{"model":"m","max_tokens":1}`, price.Tokens{Models: map[string]price.Model{"m": {Input: cent}}}},
}

func TestQuoteLeavesTheRequestAlone(t *testing.T) {
	for _, tt := range bodyPricers {
		t.Run(tt.name, func(t *testing.T) {
			r := post(t, tt.contentType, "https://api.example/", tt.body)
			for range 2 {
				_, err := tt.pricer.Quote(r)
				require.NoError(t, err)
			}
			b, err := io.ReadAll(r.Body)
			require.NoError(t, err)
			require.Equal(t, tt.body, string(b))
		})
	}
}

func TestBodyThatCannotBeReadTwiceIsUnpriced(t *testing.T) {
	for _, tt := range bodyPricers {
		t.Run(tt.name, func(t *testing.T) {
			r := post(t, tt.contentType, "https://api.example/", tt.body)
			r.GetBody = nil
			_, err := tt.pricer.Quote(r)
			require.ErrorIs(t, err, budget.ErrUnpriced)
			require.ErrorContains(t, err, "cannot be read twice")
			r.GetBody = func() (io.ReadCloser, error) { return nil, nil }
			_, err = tt.pricer.Quote(r)
			require.ErrorIs(t, err, budget.ErrUnpriced)
			_, err = price.PerCall(cent).Quote(r)
			require.NoError(t, err, "who does not need the body does not ask for it")
		})
	}
}

func TestCompressedBodyIsUnpriced(t *testing.T) {
	for _, tt := range bodyPricers {
		t.Run(tt.name, func(t *testing.T) {
			r := post(t, tt.contentType, "https://api.example/v1/models/m:run", tt.body)
			r.Header["Content-Encoding"] = []string{"identity"}
			_, err := tt.pricer.Quote(r)
			require.NoError(t, err)
			r.Header["Content-Encoding"] = []string{"identity", "gzip"}
			_, err = tt.pricer.Quote(r)
			require.ErrorIs(t, err, budget.ErrUnpriced, "its bytes may say anything, and be few")
		})
	}
}

func TestNameTwiceInAnObjectIsUnpriced(t *testing.T) {
	matrix := price.Per(cent, price.Cells("origins", "destinations"))
	for body, pricer := range map[string]price.Pricer{
		`{"to":"+1555","text":"hi","te\u0078t":"a long text"}`:                      price.SMS{Segment: cent},
		`{"to":["+1555","+1556"],"to":"+1555","text":"hi"}`:                         price.SMS{Segment: cent},
		`{"messages":[{"to":"+1555","text":"hi","to":"+95555"}]}`:                   price.SMS{Segment: cent},
		`{"messages":[{"to":"+1555","text":"hi"}],"messages":[],"to":1,"text":"x"}`: price.SMS{Segment: cent},
		`{"origins":[1,2,3],"origins":[1],"destinations":[1]}`:                      matrix,
	} {
		_, err := pricer.Quote(post(t, jsonType, "https://api.example/", body))
		require.ErrorIs(t, err, budget.ErrUnpriced, "who knows which one the vendor takes: %s", body)
	}
	_, err := price.SMS{Segment: cent}.Quote(post(t, jsonType, "https://api.example/", `{"a":{"to":"+1555","text":"hi: \\\":\": ho"},"b":{"to":"+1555","text":"x","c":{}}}`))
	require.NoError(t, err)
}

func TestFailingBodyIsItsOwnError(t *testing.T) {
	fault := errors.New("the disk is gone")
	for _, tt := range bodyPricers {
		t.Run(tt.name, func(t *testing.T) {
			r := post(t, tt.contentType, "https://api.example/", tt.body)
			var closed bool
			r.GetBody = func() (io.ReadCloser, error) {
				return spy{io.MultiReader(strings.NewReader(tt.body[:5]), failing{fault}), &closed}, nil
			}
			_, err := tt.pricer.Quote(r)
			require.ErrorIs(t, err, fault)
			require.NotErrorIs(t, err, budget.ErrUnpriced)
			require.True(t, closed)
			r.GetBody = func() (io.ReadCloser, error) { return nil, fault }
			_, err = tt.pricer.Quote(r)
			require.ErrorIs(t, err, fault)
		})
	}
}

func TestBodyThatLiesAboutItsLength(t *testing.T) {
	r := post(t, form, "https://api.example/", "To=%2B1555&Body=hi")
	r.ContentLength = 5
	_, err := price.SMS{Segment: cent}.Quote(r)
	require.ErrorIs(t, err, budget.ErrUnpriced, "what is sent would be longer than what is priced")
	r.ContentLength = 500
	_, err = price.SMS{Segment: cent}.Quote(r)
	require.NoError(t, err)
	r.ContentLength = -1
	_, err = price.SMS{Segment: cent}.Quote(r)
	require.NoError(t, err)
}

func TestHugeMessageIsUnpriced(t *testing.T) {
	for _, length := range []int64{-1, 2 << 20} {
		r := post(t, form, "https://api.example/", "To=%2B1555&Body="+strings.Repeat("x", 2<<20))
		r.ContentLength = length
		_, err := price.SMS{Segment: cent}.Quote(r)
		require.ErrorIs(t, err, budget.ErrUnpriced)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

type spy struct {
	io.Reader
	closed *bool
}

func (s spy) Close() error { *s.closed = true; return nil }

func TestOrAsksTheFallbackOnlyForAPrice(t *testing.T) {
	fault := errors.New("the disk is gone")
	tests := []struct {
		name  string
		first price.Pricer
		want  budget.Quote
		err   error
	}{
		{"a price is taken", price.PerCall(cent).In("EUR"), budget.Quote{Amount: cent, Unit: "EUR", Units: 1}, nil},
		{"a missing one is assumed", price.SMS{}, budget.Quote{Amount: 7 * cent, Unit: "USD", Units: 1, Assumed: true}, nil},
		{"a fault stays one", price.Per(cent, units(0, fault)), budget.Quote{}, fault},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			q, err := price.Or(tt.first, price.Assume(7*cent)).Quote(get(t, "https://api.example/"))
			require.ErrorIs(t, err, tt.err)
			require.Equal(t, tt.want, q)
		})
	}
}

func TestOrStatesUnitAndMeterOfItsParts(t *testing.T) {
	unit := func(p price.Pricer) string { return p.(interface{ Unit() string }).Unit() }
	require.Equal(t, "EUR", unit(price.Or(price.PerCall(1).In("EUR"), price.Free)))
	require.Equal(t, "KES", unit(price.Or(price.Free, price.Assume(1).In("KES"))))
	require.Equal(t, "USD", unit(price.Or(price.Free, price.Free)))
	_, reads := price.Or(price.PerCall(1), price.Assume(1)).(meterer)
	require.False(t, reads)
	_, reads = price.Or(price.Tokens{}, price.Assume(1)).(meterer)
	require.True(t, reads)
}

func FuzzForm(f *testing.F) {
	for _, s := range []string{"To=%2B1&Body=hi", "Body=%zz&To=1", "&&=&a", "To=1&Body=%C3%A6+x", "a=%", "%42ody=x&To=1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, body string) {
		// What net/url understands is priced by what net/url reads.
		want, err := url.ParseQuery(body)
		r := post(t, form, "https://api.example/", body)
		q, qerr := price.SMS{Segment: 1, To: []string{"To"}, Text: []string{"Body"}}.Quote(r)
		if err != nil || qerr != nil || len(want["Body"]) != 1 || len(want["To"]) != 1 || strings.ContainsAny(want.Get("To"), ",;<") {
			return
		}
		require.Equal(t, slowSegments(want.Get("Body")), q.Units)
	})
}

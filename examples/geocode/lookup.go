package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/examples/batch"
	"github.com/outlay-go/outlay/transport"
	"github.com/outlay-go/outlay/transport/provider"
	"github.com/outlay-go/outlay/transport/vendortest"
)

// configure is all that outlay has to know. The rate is the preset's.
func configure(o options, ledger budget.Ledger, base http.RoundTripper) transport.Config {
	geo := provider.GoogleGeocoding(o.price)
	geo.Budgets = []budget.Budget{budget.PerDay(o.day), budget.PerMonth(o.month)}
	for i := range geo.Budgets {
		geo.Budgets[i].Zone = geo.QuotaZone // Google's days end at midnight Pacific
	}
	geo.Retry.Unknown = transport.ReplaySafe // a lookup does no harm twice; each is paid for
	return transport.Config{Base: base, Ledger: ledger, Providers: []transport.Provider{geo}}
}

// lookup asks Google's geocoder.
type lookup struct {
	client *http.Client
	key    string
}

// longest is how long one lookup may take.
const longest = 2 * time.Minute

// answer is the part of Google's answer that is used.
type answer struct {
	Status       string
	ErrorMessage string `json:"error_message"`
	Results      []struct {
		FormattedAddress string `json:"formatted_address"`
		PlaceID          string `json:"place_id"`
		Geometry         struct {
			Location struct{ Lat, Lng json.Number }
		}
	}
}

// do looks up a row. Its error says that there is no answer yet.
func (l lookup) do(ctx context.Context, r batch.Row) (batch.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	ctx, record := transport.Record(ctx)
	result, err := l.ask(ctx, r)
	result.Cost = record.Cost()[budget.USD]
	return result, err
}

func (l lookup) ask(ctx context.Context, r batch.Row) (batch.Result, error) {
	q := url.Values{"address": {r.Values[0]}, "key": {l.key}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://maps.googleapis.com/maps/api/geocode/json?"+q.Encode(), nil)
	if err != nil {
		return batch.Result{State: batch.Failed, Detail: "it makes no request"}, nil
	}
	resp, err := l.client.Do(req)
	if err != nil {
		if transport.NotSent(err) {
			return batch.Result{}, err
		}
		return batch.Result{}, batch.ErrLater
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	_ = resp.Body.Close() // the cost is booked by now
	var a answer
	if err != nil || resp.StatusCode != http.StatusOK || json.Unmarshal(body, &a) != nil {
		return batch.Result{}, batch.ErrLater
	}
	return a.judge()
}

// judge says what an answer means for its row.
func (a *answer) judge() (batch.Result, error) {
	switch a.Status {
	case "OK":
		if len(a.Results) == 0 {
			return batch.Result{State: batch.Failed, Detail: "an answer without a result"}, nil
		}
		p := a.Results[0]
		at := p.Geometry.Location
		return batch.Result{State: batch.Done, Values: []string{at.Lat.String(), at.Lng.String(), p.PlaceID, p.FormattedAddress}}, nil
	case "ZERO_RESULTS", "INVALID_REQUEST":
		return batch.Result{State: batch.Failed, Detail: a.Status}, nil
	case "REQUEST_DENIED":
		return batch.Result{}, fmt.Errorf("the key is refused: %s", a.ErrorMessage)
	}
	return batch.Result{}, batch.ErrLater // OVER_QUERY_LIMIT, UNKNOWN_ERROR
}

// vendor is who is asked.
type vendor struct {
	base http.RoundTripper
	fake *vendortest.Fake // nil: the real one, or a test's
}

func vendorFor(o options) vendor {
	if o.live || o.base != nil {
		return vendor{base: o.base}
	}
	fake := vendortest.NewGeocoder(vendortest.Options{
		Price: o.price, Latency: 60 * time.Millisecond,
		Limit: vendortest.Limit{Requests: 50, Window: time.Second},
		Faults: vendortest.Faults{
			Seed: o.seed, Throttle: 9, Throttle429Hint: 6, Unavailable503: 9,
			Error500: 9, ResetBeforeRead: 9, ResetAfterRead: 12, Cut: 6, Slow: 12,
		},
	})
	return vendor{vendortest.Base(fake), fake}
}

func (v vendor) close() {
	if v.fake != nil {
		v.fake.Close()
	}
}

// report prints what the fake charges for this run.
func (v vendor) report(out io.Writer) {
	if v.fake != nil {
		fmt.Fprintf(out, "  the fake vendor charges %v USD for %d lookups\n", v.fake.Invoice().Total, len(v.fake.Invoice().Lines))
	}
}

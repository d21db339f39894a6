package vendortest_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/transport/vendortest"
)

func TestGoogleAnswersAndBills(t *testing.T) {
	const api = "https://maps.googleapis.com/maps/api/"
	tests := []struct {
		name, url, status string
		code              int
		units             int64
	}{
		{"address", geocode("Unter den Linden 1, Berlin"), "OK", 200, 1},
		{"reverse", api + "geocode/json?key=k&latlng=52.5,13.4", "OK", 200, 1},
		{"no result is billed", geocode("Nowhere 1"), "ZERO_RESULTS", 200, 1},
		{"nothing asked", api + "geocode/json?key=k", "INVALID_REQUEST", 400, 0},
		{"no key", api + "geocode/json?address=x", "REQUEST_DENIED", 200, 0},
		{"matrix", api + "distancematrix/json?key=k&origins=a|b&destinations=c|d|e", "OK", 200, 6},
		{"matrix without destinations", api + "distancematrix/json?key=k&origins=a", "INVALID_REQUEST", 400, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			geo := vendortest.NewGeocoder(vendortest.Options{})
			a := do(t, open(t, geo), http.MethodGet, tt.url, "")
			require.Equal(t, tt.code, a.status)
			require.Equal(t, []any{tt.status}, fields(t, a, "status"))
			require.Equal(t, budget.Amount(tt.units)*5_000_000, geo.Invoice().Total)
		})
	}
}

func TestGoogleSaysTheSameOfTheSameAddress(t *testing.T) {
	geo := vendortest.NewGeocoder(vendortest.Options{})
	c := open(t, geo)
	first := do(t, c, http.MethodGet, geocode("1 Main St"), "")
	require.Equal(t, first.body, do(t, c, http.MethodGet, geocode("1 Main St"), "").body)
	require.NotEqual(t, first.body, do(t, c, http.MethodGet, geocode("2 Main St"), "").body)
	require.Equal(t, 1, geo.Counts().Double)
	require.NotNil(t, fields(t, first, "results.geometry")[0])
}

func TestGoogleThrottlesInsideA200(t *testing.T) {
	geo := vendortest.NewGeocoder(vendortest.Options{
		Limit:  vendortest.Limit{Requests: 1, Window: forever},
		Faults: vendortest.Faults{Script: []vendortest.Fault{vendortest.None, vendortest.None, vendortest.Throttle429Hint}},
	})
	c := open(t, geo)
	want := []struct {
		code   int
		status string
		after  string
	}{{200, "OK", ""}, {200, "OVER_QUERY_LIMIT", ""}, {429, "OVER_QUERY_LIMIT", "1"}}
	for _, w := range want {
		a := do(t, c, http.MethodGet, geocode("x"), "")
		require.Equal(t, w.code, a.status)
		require.Equal(t, []any{w.status}, fields(t, a, "status"))
		require.Equal(t, w.after, a.header.Get("Retry-After"))
	}
	require.Len(t, geo.Invoice().Lines, 1)
}

package transport_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/throttle"
	"github.com/outlay-go/outlay/transport"
)

// A heavy call takes as many turns as it weighs, of the provider or of a scope.
func TestHeavyCallsTakeSeveralTurns(t *testing.T) {
	ten := []throttle.Rate{{N: 10, Per: time.Second, Burst: 10}}
	for name, change := range map[string]func(*transport.Provider, func(*http.Request) int){
		"provider": func(p *transport.Provider, w func(*http.Request) int) { p.Rates, p.Weight = ten, w },
		"scope": func(p *transport.Provider, w func(*http.Request) int) {
			p.Scopes = []transport.Scope{{Name: "key", Rates: ten, Weight: w}}
		},
	} {
		for weight, passes := range map[int]int{-1: 10, 0: 10, 3: 3, 10: 1, 11: 0} {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, answers(t, answer{status: 200}), func(c *transport.Config, p *transport.Provider) {
					c.MaxWait = transport.NoWait
					change(p, func(*http.Request) int { return weight })
				})
				for range passes {
					_, err := w.get()
					require.NoError(t, err, "%s, weight %d", name, weight)
				}
				_, err := w.get()
				require.Equal(t, map[bool]transport.Reason{true: transport.ReasonNever, false: transport.ReasonRate}[weight > 10], transport.ReasonOf(err), "%s, weight %d", name, weight)
			})
		}
	}
}

package redislimiter

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/throttle"
)

// FuzzHeard hears what anybody may publish on the channel.
func FuzzHeard(f *testing.F) {
	f.Add("p gate 1000000 throttled someone")
	f.Add("#00 gate -5 - someone")
	f.Add("p slow 0 - someone")
	f.Add("p reopen 0 operator someone")
	f.Add("p gate 9007199254740993 - someone")
	f.Add("#zz gate 1 - x")
	f.Add("  gate 9223372036854775807 - x")
	f.Fuzz(func(t *testing.T, message string) {
		l := &Limiter{local: throttle.NewBucket(), id: "me", sets: map[string]*set{}, scopes: map[string]*scope{}, names: map[string]string{"p": "p", "#00": "p\x1fs\x1f+1"}, changed: make(chan struct{}), shutter: make(chan struct{})}
		l.heard(t.Context(), message)
		for key, sc := range l.scopes {
			require.NotEmpty(t, key)
			require.LessOrEqual(t, time.Until(sc.gate), longest)
		}
	})
}

package dialect

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// vector is one response of a vendor and the right reading of it. A key of expect that
// is absent asserts nothing; null asserts that nothing can be derived.
type vector struct {
	Vendor   string
	Case     string
	Response struct {
		Status  int
		Headers map[string][]string
		Body    string
	}
	Now    time.Time
	Expect map[string]any
}

func readVectors(t *testing.T, file string) []vector {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var vectors []vector
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	require.NoError(t, d.Decode(&vectors))
	require.NotEmpty(t, vectors)
	return vectors
}

// read reads the response as the transport would: with a body only where it is wanted.
func (v vector) read() Reading {
	a := Answer{Status: v.Response.Status, Header: http.Header{}, Now: v.Now}
	for key, lines := range v.Response.Headers {
		key = http.CanonicalHeaderKey(key)
		a.Header[key] = append(a.Header[key], lines...)
	}
	d := For(v.Vendor)
	if d.WantsBody(a.Status, a.Header) {
		a.Body = []byte(v.Response.Body)
	}
	return d.Read(a)
}

// told says what a Reading tells in the words of the vectors.
func told(r Reading) map[string]any {
	m := window(r.Window)
	delete(m, "name")
	m["throttled"] = r.Throttled
	m["retry_after_ms"] = nil
	if r.Hinted {
		m["retry_after_ms"] = ms(r.RetryAfter)
	}
	m["scope/policy"] = nil
	if r.Policy != "" {
		m["scope/policy"] = r.Policy
	}
	m["billed"] = [...]any{BilledUnknown: "unknown", BilledYes: true, BilledNo: false}[r.Billed]
	windows := map[string]any{}
	for _, w := range r.Windows {
		windows[w.Name] = window(w)
	}
	if len(r.Windows) == 0 && r.Window.Known != 0 {
		windows[r.Window.Name] = window(r.Window)
	}
	m["windows"] = windows
	return m
}

func window(w Window) map[string]any {
	m := map[string]any{"name": w.Name, "limit": nil, "remaining": nil, "reset_after_ms": nil}
	if w.Known&HasLimit != 0 {
		m["limit"] = json.Number(fmt.Sprint(w.Limit))
	}
	if w.Known&HasRemaining != 0 {
		m["remaining"] = json.Number(fmt.Sprint(w.Remaining))
	}
	if w.Known&HasReset != 0 {
		m["reset_after_ms"] = ms(w.Reset)
	}
	return m
}

// ms rounds up to the millisecond, as a lower bound has to be.
func ms(d time.Duration) any {
	return json.Number(fmt.Sprint((d + time.Millisecond - 1).Milliseconds()))
}

// wrong lists the keys that are not as expected.
func (v vector) wrong() []string {
	got := told(v.read())
	var wrong []string
	for _, key := range slices.Sorted(maps.Keys(v.Expect)) {
		want := v.Expect[key]
		if list, ok := want.([]any); ok {
			byName := map[string]any{}
			for _, w := range list {
				byName[w.(map[string]any)["name"].(string)] = w
			}
			want = byName
		}
		g, w := fmt.Sprint(got[key]), fmt.Sprint(want)
		if g != w {
			wrong = append(wrong, fmt.Sprintf("%s: got %s, want %s", key, g, w))
		}
	}
	return wrong
}

// TestVendorSignals reads the responses in the file named by OUTLAY_VECTORS.
func TestVendorSignals(t *testing.T) {
	file := os.Getenv("OUTLAY_VECTORS")
	if file == "" {
		file = "testdata/vendor-signals.json"
	}
	line := checkVectors(t, file)
	fmt.Println(line)
	t.Log(line)
}

// TestVariations reads further responses of the same vendors.
func TestVariations(t *testing.T) {
	t.Log(checkVectors(t, "testdata/variations.json"))
}

func checkVectors(t *testing.T, file string) string {
	t.Helper()
	vectors := readVectors(t, file)
	right := 0
	for i, v := range vectors {
		wrong := v.wrong()
		if len(wrong) == 0 {
			right++
			continue
		}
		t.Errorf("%d. %s, %s: %q", i, v.Vendor, v.Case, wrong)
	}
	return fmt.Sprintf("vectors: %d of %d right", right, len(vectors))
}

package dialect_test

import (
	"fmt"
	"net/http"
	"time"

	"github.com/outlay-go/outlay/transport/dialect"
)

// Some vendors say no in a 200.
func Example() {
	a := dialect.Answer{
		Status: http.StatusOK,
		Header: http.Header{"Content-Type": {"application/json"}},
		Body:   []byte(`{"status": "OVER_QUERY_LIMIT", "results": []}`),
		Now:    time.Now(),
	}
	r := dialect.For("google-maps").Read(a)
	fmt.Println("throttled:", r.Throttled, "- billed:", r.Billed == dialect.BilledYes)
	// Output: throttled: true - billed: false
}

// Most say when to come back.
func ExampleStandard() {
	r := dialect.Standard{}.Read(dialect.Answer{
		Status: http.StatusTooManyRequests,
		Header: http.Header{"Retry-After": {"30"}},
		Now:    time.Now(),
	})
	fmt.Println(r.Throttled, r.RetryAfter)
	// Output: true 30s
}

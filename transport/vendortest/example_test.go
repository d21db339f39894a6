package vendortest_test

import (
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/outlay-go/outlay/transport/vendortest"
)

func Example() {
	sms := vendortest.NewSMS(vendortest.Options{
		Limit: vendortest.Limit{Requests: 30, Window: time.Second},
		// The first answer is lost on its way; the second request is throttled.
		Faults: vendortest.Faults{Script: []vendortest.Fault{vendortest.ResetAfterRead, vendortest.Throttle429Hint}},
	})
	defer sms.Close()
	client := &http.Client{Transport: vendortest.Base(sms)} // outlay's transport would go around Base
	defer client.CloseIdleConnections()

	for range 3 {
		resp, err := client.PostForm("https://api.twilio.com/2010-04-01/Accounts/AC1/Messages.json",
			url.Values{"To": {"+4930123456"}, "From": {"+15550001"}, "Body": {"Hello, Wörld 😀"}})
		if err != nil {
			fmt.Println("no answer")
			continue
		}
		resp.Body.Close()
		fmt.Println(resp.StatusCode)
	}
	fmt.Println("sent twice:", sms.Counts().Double, "charges:", len(sms.Invoice().Lines))
	// Output:
	// no answer
	// 429
	// 201
	// sent twice: 1 charges: 2
}

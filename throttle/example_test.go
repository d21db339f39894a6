package throttle_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/outlay-go/outlay/throttle"
)

func ExampleBucket() {
	limiter := throttle.NewBucket()
	sms := throttle.Leg{Key: "sms", Rates: []throttle.Rate{{N: 10, Per: time.Second, Burst: 2}}}
	sender := throttle.Leg{Key: "sms/+1555", Rates: []throttle.Rate{{N: 1, Per: time.Hour, Burst: 3}}}

	for range 3 {
		// Wait a second at most for a turn on both, or on none.
		turn, err := limiter.Wait(context.Background(), throttle.Ask{
			Legs:    []throttle.Leg{sms, sender},
			MaxWait: time.Second,
		})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("sent")
		turn.Done()
	}

	// The provider asks for a pause: nobody starts before it is over.
	_ = limiter.Cap(context.Background(), throttle.Cap{Key: "sms", Until: time.Now().Add(time.Minute), Cause: throttle.CauseThrottled})
	_, err := limiter.Wait(context.Background(), throttle.Ask{Legs: []throttle.Leg{sms}, MaxWait: time.Second})
	var refused *throttle.WaitError
	if errors.As(err, &refused) {
		fmt.Println(refused.Provider, refused.Reason, time.Until(refused.RetryAt).Round(time.Minute))
	}
	// Output:
	// sent
	// sent
	// sent
	// sms gate 1m0s
}

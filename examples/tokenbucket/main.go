// Tokenbucket shows a token bucket at work, without HTTP and without money. It holds
// five tokens and gets two back each second: eight calls at once, none of which waits,
// then a pause of a second and a half, and three more.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"time"

	"github.com/outlay-go/outlay/throttle"
)

// capacity is how many tokens the bucket holds.
const capacity = 5

var rates = []throttle.Rate{{N: 2, Per: time.Second, Burst: capacity}}

func main() {
	if err := show(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// show makes the calls and prints what becomes of them.
func show(ctx context.Context, out io.Writer) error {
	bucket := throttle.NewBucket()
	passed, refused := 0, 0
	for n := 1; n <= 11; n++ {
		if n == 9 {
			time.Sleep(1500 * time.Millisecond)
			fmt.Fprintf(out, "1.5 s later, tokens: %d\n", left(ctx, bucket))
		}
		turn, err := bucket.Wait(ctx, ask(1))
		var full *throttle.WaitError
		switch {
		case err == nil:
			passed++
			fmt.Fprintf(out, "call %d: passed, tokens left: %d\n", n, left(ctx, bucket))
			turn.Done() // the call would be made here
		case errors.As(err, &full):
			refused++
			fmt.Fprintf(out, "call %d: refused (%s), tokens left: %d\n", n, full.Reason, left(ctx, bucket))
		default:
			return err
		}
	}
	fmt.Fprintf(out, "%d passed, %d refused\n", passed, refused)
	return nil
}

// ask asks for a turn that takes so many tokens, now or never: MaxWait is zero.
func ask(tokens int) throttle.Ask {
	return throttle.Ask{Legs: []throttle.Leg{{Key: "example", Rates: rates, Weight: tokens}}}
}

// left tells how many tokens are in the bucket: as many as can be taken and given back.
func left(ctx context.Context, bucket *throttle.Bucket) int {
	for n := capacity; n > 0; n-- {
		if turn, err := bucket.Wait(ctx, ask(n)); err == nil {
			turn.Cancel()
			return n
		}
	}
	return 0
}

package redislimiter_test

import (
	"log"

	"github.com/redis/go-redis/v9"

	"github.com/outlay-go/outlay/throttle"
	"github.com/outlay-go/outlay/throttle/redislimiter"
)

// All processes with the same Redis and Prefix take turns from the same buckets. While
// Redis is away each of them goes on with buckets of its own.
func Example() {
	client := redis.NewClient(&redis.Options{Addr: "redis:6379"})
	shared, err := redislimiter.New(client, redislimiter.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer shared.Close()
	limiter := throttle.Fallback(shared, throttle.NewBucket())
	_ = limiter // transport.Config{Limiter: limiter, ...}
}

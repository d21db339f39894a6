package redisledger_test

import (
	"log"

	"github.com/redis/go-redis/v9"

	"github.com/outlay-go/outlay/budget/redisledger"
)

// All processes with the same Redis and Prefix spend from the same budgets.
func Example() {
	client := redis.NewClient(&redis.Options{Addr: "redis:6379"})
	ledger, err := redisledger.New(client, redisledger.Options{})
	if err != nil {
		log.Fatal(err) // says what is wrong with this Redis, without its password
	}
	defer ledger.Close()
	_ = ledger // transport.Config{Ledger: ledger, ...}
}

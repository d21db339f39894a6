// Package provider has presets: one function for each API of a vendor, which returns a
// [transport.Provider] with the hosts, the dialect, the published limits and the rules
// of billing of that vendor. What only the user knows is an argument: the price.
//
//	sms := provider.TwilioSMS(budget.MustParse("0.0083")) // what you pay per segment
//	sms.Rates = []throttle.Rate{throttle.PerSecond(10)}   // what your sender may send
//	sms.Budgets = []budget.Budget{budget.PerDay(50 * budget.Unit)}
//
// A preset is a plain value, edited by assignment before it is given to
// [transport.New]. Every call makes a new one.
//
// # Limits
//
// A preset has rates only where the vendor publishes a number that holds for everybody;
// its comment says where and when it was read. Most limits belong to an account or a
// plan: set Rates, and those of the Scopes, to yours. Without a rate nothing is held back
// before the vendor throttles, but then everybody waits as it says.
//
// Some scopes of presets have no rates. They tell the calls apart that a vendor throttles
// apart (methods, endpoints, models), so that a refusal of one does not stop the others.
//
// # Prices
//
// Prices are those of your contract. A preset that owns a whole host prices all of it:
// what is billed by your price, what the vendor does not bill (reading a message's
// status) at zero, and what is billed otherwise not at all: while a budget in money
// applies such calls are refused with [budget.ErrUnpriced]. To make them, add a provider
// whose patterns are more specific, with a price of its own.
//
// A preset that owns a part of a host leaves the rest without a provider: there
// [transport.PassUnknownHosts] refuses what no pattern matches. Add the vendor's other
// presets, or patterns of your own.
//
// # Refusals
//
// Functions like [TwilioRefusal] make the vendor's own error response of a refusal, for
// SDKs that repeat every transport error. They are not set by the presets: an error that
// errors.As finds is better where the SDK lets it through. Where an SDK can be told not to
// repeat, its preset's comment says how.
//
// # Time zones
//
// A QuotaZone is absent where the zone cannot be loaded: programs for machines without
// zone files import time/tzdata.
package provider

import (
	"time"

	"github.com/outlay-go/outlay/transport"
)

// zone loads a time zone. Without zone files there is none.
func zone(name string) *time.Location {
	z, err := time.LoadLocation(name)
	if err != nil {
		return nil
	}
	return z
}

// pacific is where the days of Google's quotas end.
func pacific() *time.Location { return zone("America/Los_Angeles") }

// account is a scope for all calls. As the last of several it is what a refusal
// concerns that names none.
func account() transport.Scope { return transport.Scope{Name: "account"} }

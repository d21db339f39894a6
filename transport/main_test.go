package transport_test

import (
	"testing"

	"go.uber.org/goleak"
)

// No goroutine outlives the body of its call.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

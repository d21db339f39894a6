package statuspage

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/transport"
)

// The memory of a page is what its documentation says.
func TestMemoryIsAsStated(t *testing.T) {
	rings := (maxDecisions + maxChanges) * unsafe.Sizeof(transport.Event{})
	hour, lacks := unsafe.Sizeof(hour{}), maxLacks*unsafe.Sizeof(lack{})
	history := unsafe.Sizeof(history{}) + 2*maxPoints*unsafe.Sizeof(point{})
	t.Logf("rings %d KiB, a provider %d and %d KiB, a budget %d KiB", rings>>10, hour>>10, lacks>>10, history>>10)
	require.LessOrEqual(t, rings, uintptr(160<<10))
	require.LessOrEqual(t, hour, uintptr(12<<10))
	require.LessOrEqual(t, lacks, uintptr(6<<10))
	require.LessOrEqual(t, history, uintptr(12<<10))
}

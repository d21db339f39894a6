package dialect

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A message may hold bytes that are no text; what is found in it stands where it was.
func TestBrokenTextBeforeAWait(t *testing.T) {
	c := clock{h: http.Header{}, now: noon}
	for _, before := range []string{"", "\xba\x99\xff", strings.Repeat("\xff", 500), "\xe2\x82", "İİİ", "\x00"} {
		d, ok := c.waitIn(before+"Please Retry After 37 seconds", time.Second, "retry after ")
		require.True(t, ok, "%q", before)
		require.Equal(t, 37*time.Second, d, "%q", before)
	}
	_, ok := c.waitIn("\xff\xff\xffretry after ", time.Second, "retry after ")
	require.False(t, ok)
}

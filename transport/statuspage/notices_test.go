package statuspage_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/transport/statuspage"
)

// What the program around the page has to say stands first, as text.
func TestNoticesOfTheProgram(t *testing.T) {
	w := newWorld(t, new(budget.Memory), provider("maps", "5"))
	require.Contains(t, answerTo(w.page, ask("GET", "/?format=json")).Body.String(), `"notices": []`)
	var said []string
	page := statuspage.New(statuspage.Options{Notices: func() []string { return said }})
	page.Watch(w.Transport)
	answer := func(target string) string { return answerTo(page, ask("GET", target)).Body.String() }
	require.NotContains(t, answer("/"), `<span class="tag">note</span>`)
	said = []string{"the file <b>x</b> was refused"}
	html := answer("/")
	require.Contains(t, html, `<span class="tag">note</span>`)
	require.Contains(t, html, "the file &lt;b&gt;x&lt;/b&gt; was refused")
	require.Contains(t, answer("/?format=json"), `"level": "warn"`)
	var got struct{ Notices []string }
	require.NoError(t, json.Unmarshal([]byte(answer("/?format=json")), &got))
	require.Equal(t, said, got.Notices)
}

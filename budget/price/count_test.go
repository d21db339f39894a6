package price

import (
	"bytes"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
)

func emailForm(t testing.TB) (contentType, body string) {
	var b bytes.Buffer
	m := multipart.NewWriter(&b)
	for _, f := range [][2]string{{"from", "me@example.com"}, {"to", "a@example.com, b@example.com"}, {"cc", "c@example.com"}, {"text", "to, cc"}} {
		require.NoError(t, m.WriteField(f[0], f[1]))
	}
	w, err := m.CreateFormFile("attachment", "to")
	require.NoError(t, err)
	_, err = w.Write(bytes.Repeat([]byte("to=x&"), 1<<19)) // longer than any form may be
	require.NoError(t, err)
	require.NoError(t, m.Close())
	return m.FormDataContentType(), b.String()
}

func TestValues(t *testing.T) {
	const form = "application/x-www-form-urlencoded"
	parts, partsBody := emailForm(t)
	tests := []struct {
		name, contentType, body string
		names                   []string
		want                    int64
	}{
		{"a list and a string", "application/json", `{"to":["a","b"],"cc":"c","subject":"to"}`, []string{"to", "cc", "bcc"}, 3},
		{"objects in lists", "application/json", `{"personalizations":[{"to":[{"email":"a","name":"A"},{"email":"b"}]},{"to":[{"email":"c"}]}],"to":"x"}`, []string{"personalizations.to.email"}, 3},
		{"no content type", "", `[{"to":["a"]},{"to":["b","c"]}]`, []string{"to"}, 3},
		{"deeper is another name", "application/json", `{"to":["a"],"headers":{"to":"b"}}`, []string{"to"}, 1},
		{"no strings", "application/json", `{"to":["a",null,1]}`, []string{"to"}, 1},
		{"a list in one string", "application/json", `{"to":"a@x.example, b@x.example;c@x.example","cc":["d","e,f"]}`, []string{"to", "cc"}, 6},
		{"a list behind escapes", "application/json", `{"to":"a\u002cb\u003Bc"}`, []string{"to"}, 3},
		{"a long text beside it", "application/json", `{"text":"` + strings.Repeat("a,", 999) + `","to":"a"}`, []string{"to"}, 1},
		{"a form", form, "to=a%2Cb&to=c&text=to", []string{"to"}, 3},
		{"several parts", parts, partsBody, []string{"to", "cc", "bcc"}, 3},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, err := http.NewRequest(http.MethodPost, "https://example.com", strings.NewReader(tt.body))
			require.NoError(t, err)
			r.Header.Set("Content-Type", tt.contentType)
			n, err := Values(tt.names...)(r)
			require.NoError(t, err)
			require.Equal(t, tt.want, n)
		})
	}
}

func TestNothingToCount(t *testing.T) {
	for name, tt := range map[string][2]string{
		"no body":          {"", ""},
		"another name":     {"application/json", `{"recipient":"a"}`},
		"an empty value":   {"application/x-www-form-urlencoded", "to="},
		"a malformed form": {"application/x-www-form-urlencoded", "to=%zz"},
		"a list too long":  {"application/json", `{"to":"` + strings.Repeat("a@x.example,", 99) + `"}`},
		"a form too large": {"application/x-www-form-urlencoded", "to=" + strings.Repeat("a", maxBody)},
		"parts, cut":       {"multipart/form-data; boundary=x", "--x\r\nContent-Disposition: form-data; name=\"to\"\r\n\r\na"},
		"parts, encoded": {"multipart/form-data; boundary=x", "--x\r\nContent-Disposition: form-data; name=\"to\"\r\n" +
			"Content-Transfer-Encoding: base64\r\n\r\nYSxiLGM=\r\n--x--\r\n"}, // a,b,c
		"parts, no boundary": {"multipart/form-data", "to=a"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := http.NewRequest(http.MethodPost, "https://example.com", strings.NewReader(tt[1]))
			require.NoError(t, err)
			r.Header.Set("Content-Type", tt[0])
			_, err = Values("to")(r)
			require.ErrorIs(t, err, budget.ErrUnpriced)
		})
	}
}

func FuzzValues(f *testing.F) {
	parts, body := emailForm(f)
	f.Add("application/json", `{"to":["a",{"to":"b"}]}`)
	f.Add("application/x-www-form-urlencoded", "to=a,b&to=%zz")
	f.Add(parts, body[:400])
	f.Fuzz(func(t *testing.T, contentType, body string) {
		r, err := http.NewRequest(http.MethodPost, "https://example.com", strings.NewReader(body))
		require.NoError(t, err)
		r.Header["Content-Type"] = []string{contentType}
		n, err := Values("to")(r)
		require.True(t, err != nil || n > 0)
		require.LessOrEqual(t, n, int64(len(body)))
	})
}

package provider

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/outlay-go/outlay/budget"
)

// maxBody bounds the bodies that are read to be priced.
const maxBody = 1 << 20

// readBody copies the body of a request, which stays as it is.
func readBody(r *http.Request) ([]byte, error) {
	if r.Body == nil || r.Body == http.NoBody {
		return nil, nil
	}
	if r.GetBody == nil {
		return nil, fmt.Errorf("%w: the body cannot be read twice", budget.ErrUnpriced)
	}
	body, err := r.GetBody()
	if err == nil && body == nil {
		err = fmt.Errorf("%w: GetBody gave no body", budget.ErrUnpriced)
	}
	if err != nil {
		return nil, err
	}
	defer body.Close()
	b, err := io.ReadAll(io.LimitReader(body, maxBody+1))
	if err == nil && len(b) > maxBody {
		err = fmt.Errorf("%w: the body is too large", budget.ErrUnpriced)
	}
	return b, err
}

// queryForm reads the form in a body, all of which must be well formed.
func queryForm(r *http.Request) (url.Values, error) {
	b, err := readBody(r)
	if err != nil {
		return nil, err
	}
	form, err := url.ParseQuery(string(b))
	if err != nil {
		return nil, fmt.Errorf("%w: the form is malformed", budget.ErrUnpriced)
	}
	return form, nil
}

// jsonElements counts the elements of the array in a body.
func jsonElements(r *http.Request) (int64, error) {
	b, err := readBody(r)
	if err != nil {
		return 0, err
	}
	var all []json.RawMessage
	if json.Unmarshal(b, &all) != nil {
		return 0, fmt.Errorf("%w: the body is no JSON array", budget.ErrUnpriced)
	}
	return int64(len(all)), nil
}

// xmlText escapes a text for XML.
func xmlText(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a builder takes everything
	return b.String()
}

package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/transport/vendortest"
)

// variables are those that the examples name.
var variables = []string{
	"OUTLAY_ADMIN=" + adminToken, "OUTLAY_SHOP=shopshopshopshop01", "OUTLAY_WORKER=workerworkerworker", "OUTLAY_REDIS=redis://127.0.0.1:1",
	"TWILIO_API_KEY=SKreal", "TWILIO_API_SECRET=real-secret-of-twilio", "GOOGLE_MAPS_KEY=real-secret-of-google",
	"OPENAI_API_KEY=real-secret-of-openai", "STRIPE_API_KEY=real-secret-of-stripe",
}

func setVariables(t *testing.T) {
	t.Helper()
	for _, v := range variables {
		name, value, _ := strings.Cut(v, "=")
		t.Setenv(name, value)
	}
}

func example(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	require.NoError(t, err)
	return string(b)
}

// Every example is checked and explained as it stands.
func TestExamplesAreChecked(t *testing.T) {
	for _, name := range []string{"minimal.yaml", "company.yaml", "fleet.yaml"} {
		out, code := run1(t, "check", "-config", name, "-no-secrets", "-strict", "-print")
		assert.Zero(t, code, out)
		assert.Contains(t, out, name+": good; ")
	}
	setVariables(t)
	out, code := run1(t, "check", "company.yaml", "-print")
	assert.Zero(t, code, out)
	assert.Contains(t, out, "company.yaml:6:17: tls.cert: the file tls.crt cannot be found")
	assert.Contains(t, out, "credential: basic (secret)")
	assert.NotContains(t, out, "real-secret")
	assert.NotContains(t, out, adminToken)

	config := where(t, example(t, "company.yaml"))
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"POST /twilio/2010-04-01/Accounts/AC1/Messages.json", "-d", "To=%2B4930123456&From=%2B12025550100&Body=Hi"}, []string{
			"provider    twilio", "hold        0.095 USD", "budget      twilio-day: 0 of 50 USD used, 50 left", "budget      all-month: 0 of 900 USD used, 900 left",
			"upstream    https://api.twilio.com/2010-04-01/Accounts/AC1/Messages.json", "scopes      form From, sender", "result      it would be sent",
		}},
		{[]string{"GET /google/maps/api/geocode/json?address=Berlin"}, []string{"hold        0.005 USD", "result      it would be sent"}},
		{[]string{"GET /google/maps/api/place/json"}, []string{"refused     402"}},
		{[]string{"POST /openai/v1/chat/completions", "-H", "Outlay-Tenant: acme", "-d", `{"model":"gpt-4o-mini","max_tokens":10,"messages":[{"role":"user","content":"Hi"}]}`}, []string{
			"tenant      acme", "budget      openai-tenant: 0 of 25 USD used, 25 left", "scopes      plan, ",
		}},
		{[]string{"POST /openai/v1/chat/completions", "-d", `{"model":"gpt-5"}`}, []string{"refused     402"}},
		{[]string{"-listener", "stripe", "POST /v1/charges"}, []string{"provider    stripe", "upstream    https://api.stripe.com/v1/charges"}},
		{[]string{"-listener", "10.0.3.5:8788", "GET /google/maps/api/geocode/json?address=Berlin"}, []string{
			"listener    10.0.3.5:8788", "caller      unknown", "refused     401: a token of this gateway is needed",
		}},
		{[]string{"-listener", "10.0.3.5:8788", "GET /google/maps/api/geocode/json?address=Berlin", "-H", "Outlay-Token: shopshopshopshop01"}, []string{
			"caller      shop", "result      it would be sent",
		}},
		{[]string{"OPTIONS *"}, []string{"provider    none", "refused     400: the path must begin with a slash"}},
		{[]string{"CONNECT api.twilio.com:443"}, []string{"provider    none", "refused     405: this is no proxy"}},
		{[]string{"GET http://evil.test/google/x"}, []string{"refused     403: this is no proxy"}},
		{[]string{"GET /google/maps/api/geocode/json?address=Berlin&key=AIza-real-secret&Key=real-secret"}, []string{"geocode/json?address=Berlin&key=(secret)&Key=(secret)\n"}},
		{[]string{"GET /nowhere/at/all"}, []string{"provider    none", "refused     404"}},
	} {
		out, code := run1(t, append([]string{"explain", "-config", config}, c.args...)...)
		status := done
		for _, w := range c.want {
			assert.Contains(t, out, w)
			if strings.HasPrefix(w, "refused ") {
				status = 3
			}
		}
		assert.Equal(t, status, code, out)
		assert.NotContains(t, out, "real-secret")
	}
	_, err := os.Stat(filepath.Join(filepath.Dir(config), "spend.db"))
	assert.ErrorIs(t, err, os.ErrNotExist, "check and explain write nothing")
}

func TestCheckTellsEverythingAndExits(t *testing.T) {
	wrong := strings.NewReplacer("rates: [10/s]", "rate: [10/s]", "limit: 50 USD", "limit: 50").Replace(example(t, "minimal.yaml"))
	config := where(t, wrong)
	out, code := run1(t, "check", "-config", config)
	assert.Equal(t, failed, code)
	assert.Equal(t, config+`:6:5: unknown key "rate" in providers.twilio: did you mean "rates"?`+"\n"+
		config+`:9:27: budget twilio-day: limit "50" has no currency: write 50 USD`+"\n", out)
	out, code = run1(t, "-config", config)
	assert.Equal(t, failed, code, "it does not start either")
	assert.Contains(t, out, `did you mean "rates"?`)

	config = where(t, strings.Replace(example(t, "minimal.yaml"), "    rates: [10/s]", "    max_wait: 45s", 1))
	out, code = run1(t, "check", "-config", config)
	assert.Zero(t, code, out)
	assert.Contains(t, out, "(warning)")
	_, code = run1(t, "check", "-config", config, "-strict")
	assert.Equal(t, misused, code)
	for _, args := range [][]string{{"explode"}, {"run", "-nonsense"}, {"run", "now"}, {"explain", "GET"}, {"explain", "-config", config, "-listener", "nobody", "GET /"}, {"token", "--prefix", "a b"}} {
		_, code = run1(t, args...)
		assert.Equal(t, misused, code, args)
	}
	_, code = run1(t, "-h")
	assert.Zero(t, code)
}

func TestTokensAndVersion(t *testing.T) {
	out, code := run1(t, "token", "--prefix", "AIza")
	require.Zero(t, code)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	token := lines[0]
	assert.Regexp(t, `^AIza[A-Z2-7]{32}$`, token)
	sum := sha256.Sum256([]byte(token))
	assert.Contains(t, out, `token_sha256: "`+hex.EncodeToString(sum[:])+`"`)
	fake := vendortest.NewGitHub(vendortest.Options{})
	defer fake.Close()
	config := where(t, strings.Replace(head, `"127.0.0.1:0"}]`, `"127.0.0.1:0", auth: token}]`, 1)+`callers: {shop: {token_sha256: "`+hex.EncodeToString(sum[:])+`"}}
providers: {github: {preset: github, upstream: "`+fake.URL()+`", allow_private: true, credential: {bearer: "plain:the-real-key"}}}
`)
	p := launch(t, config)
	assert.Equal(t, 401, send(t.Context(), "GET", p.calls+"/github/repos/a/b", "").status)
	assert.Equal(t, 200, send(t.Context(), "GET", p.calls+"/github/repos/a/b", "", "Authorization", "Bearer "+token).status)
	assert.Equal(t, 200, send(t.Context(), "GET", p.calls+"/github/repos/a/b", "", "Outlay-Token", token).status)
	assert.NotContains(t, p.text(), "the-real-key")

	out, code = run1(t, "version", "-json")
	assert.Zero(t, code)
	var v map[string]string
	require.NoError(t, json.Unmarshal([]byte(out), &v))
	assert.NotEmpty(t, v["go"])
	out, code = run1(t, "healthcheck", "-address", strings.TrimPrefix(p.admin, "http://"))
	assert.Zero(t, code, out)
	for _, broken := range []string{"x: 1\n", "providers: [\n"} { // the next one, with a mistake in it, is no reason to end the one in force
		write(t, config, "version: 1\nadmin:\n  # here\n\n  address: "+strings.TrimPrefix(p.admin, "http://")+"\n"+broken)
		out, code = run1(t, "healthcheck", "-config", config)
		assert.Zero(t, code, out)
	}
	p.kill()
	_, code = run1(t, "healthcheck", "-address", strings.TrimPrefix(p.admin, "http://"))
	assert.Equal(t, failed, code)
}

// certify writes a certificate for 127.0.0.1 of an authority of its own.
func certify(t *testing.T, dir string) *x509.CertPool {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "outlay test"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	require.NoError(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "tls.crt"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "tls.key"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600))
	parsed, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	pool := x509.NewCertPool()
	pool.AddCert(parsed)
	return pool
}

// The company's file runs against fakes of its vendors, with other addresses alone.
func TestTheCompanyExampleRuns(t *testing.T) {
	sms, geo := vendortest.NewSMS(vendortest.Options{}), vendortest.NewGeocoder(vendortest.Options{})
	llm, pay := vendortest.NewOpenAI(vendortest.Options{}), vendortest.NewStripe(vendortest.Options{})
	text := example(t, "company.yaml")
	for preset, fake := range map[string]*vendortest.Fake{"twilio   ": sms, "google-maps": geo, "openai": llm, "stripe": pay} {
		defer fake.Close()
		require.Equal(t, 1, strings.Count(text, "preset: "+preset))
		text = strings.Replace(text, "preset: "+preset, "preset: "+strings.TrimSpace(preset)+"\n    upstream: "+fake.URL()+"\n    allow_private: true", 1)
	}
	for _, address := range []string{"127.0.0.1:8787", "10.0.3.5:8788", "127.0.0.1:8790", "127.0.0.1:8786"} {
		text = strings.Replace(text, address, "127.0.0.1:0", 1)
	}
	config := where(t, text)
	roots := certify(t, filepath.Dir(config))
	setVariables(t)
	p := launch(t, config)
	assert.Equal(t, 201, p.message(t.Context(), 1).status)
	assert.Equal(t, 200, send(t.Context(), "GET", p.calls+"/google/maps/api/geocode/json?address=Berlin", "").status)
	chat := `{"model":"gpt-4o-mini","max_tokens":10,"messages":[{"role":"user","content":"Hi"}]}`
	assert.Equal(t, 200, send(t.Context(), "POST", p.calls+"/openai/v1/chat/completions", chat, "Content-Type", "application/json", "Outlay-Tenant", "acme").status)
	assert.Equal(t, 200, send(t.Context(), "POST", p.more["calls to stripe"]+"/v1/charges", "amount=1").status)
	for _, b := range p.status().Budgets {
		if b.Name == "all-month" {
			want := sms.Invoice().Total + geo.Invoice().Total + llm.Invoice().Total
			assert.Equal(t, want, b.Settled+b.Presumed, "the books are the invoices")
			assert.Greater(t, b.Settled, budget.Amount(0))
		}
	}

	secure := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}}
	ask := func(token string) (int, string) {
		req, err := http.NewRequestWithContext(t.Context(), "GET", strings.Replace(p.tls, "http:", "https:", 1)+"/google/maps/api/geocode/json?address=Bonn&key="+token, nil)
		require.NoError(t, err)
		resp, err := secure.Do(req)
		require.NoError(t, err)
		defer resp.Body.Close()
		return resp.StatusCode, resp.Proto
	}
	status, _ := ask("AIzaNobody")
	assert.Equal(t, 401, status, "from other machines a token is needed")
	status, proto := ask("shopshopshopshop01")
	assert.Equal(t, 200, status, "it may stand in place of the vendor's key")
	assert.Equal(t, "HTTP/2.0", proto)
	status, _ = ask("workerworkerworker")
	assert.Equal(t, 403, status, "the worker may not use it")
	assert.NotContains(t, p.text(), "real-secret")
	assert.NotContains(t, p.text(), "shopshop")
}

// Names that a page of the web can make point here are refused on the admin address too.
func TestAdminKnowsItsNames(t *testing.T) {
	h := known([]string{"localhost", "gateway.internal"}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	for host, want := range map[string]int{
		"localhost:8786": 204, "127.0.0.1:8786": 204, "10.0.3.5": 204, "[::1]:8786": 204, "Gateway.Internal:8786": 204,
		"evil.example:8786": 421, "localhost.evil.example": 421, "": 421,
	} {
		r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
		r.Host = host
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		assert.Equal(t, want, w.Code, "%q", host)
	}
}

// A budget of calls needs no price.
func TestExplainOfCalls(t *testing.T) {
	config := where(t, head+"providers: {api: {upstream: \"https://api.example.com\", budgets: {calls: {limit: 10 calls, every: day}}}}\n")
	out, code := run1(t, "explain", "-config", config, "GET /api/x")
	assert.Zero(t, code, out)
	assert.Contains(t, out, "hold        1 call; it has no price, and no budget of money asks for one\n")
	assert.NotContains(t, out, "assumed")
	out, code = run1(t, "explain", "-config", config, "-H", "Host: gateway.internal", "GET /api/x")
	assert.Equal(t, wouldRefuse, code)
	assert.Contains(t, out, "refused     421: this gateway is not known under that host name")
}

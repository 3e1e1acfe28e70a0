package assembly_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/kube/kubetest"
	"github.com/openpai/paictl/pkg/people"
	"github.com/openpai/paictl/pkg/secret"
	"github.com/openpai/paictl/pkg/server/servertest"
	"github.com/openpai/paictl/test/programs"
)

// Memory limits of the program from templates/charts/rest-server/values.yaml.
const (
	memoryLimit  = 300 << 20
	memoryTarget = "260MiB"
)

// An out-of-memory kill of the program interrupts all requests.
func TestNoBodiesTakeMoreMemoryThanTheProgramHas(t *testing.T) {
	c := kubetest.Start(t)
	servertest.Prepare(t, c)
	t.Setenv("GOMEMLIMIT", memoryTarget)
	p := servertest.Run(t, c, kubetest.Kubeconfig(t), map[string]any{}, "--job-controller", "", "--scheduler", "")
	p.Client.Transport.(*http.Transport).Protocols = new(http.Protocols)
	p.Client.Transport.(*http.Transport).Protocols.SetHTTP1(true) // each request has a connection
	all, err := people.Open(c.Config, people.Options{})
	require.NoError(t, err)
	var tokens []string
	for i := range 8 {
		name := fmt.Sprint("mallory", i)
		_, err := all.Add(t.Context(), people.NewUser{Name: name, Password: secret.String(servertest.Password)})
		require.NoError(t, err)
		p.Eventually("the person can sign in", func() bool {
			a := p.Do("POST", "/api/v2/authn/basic/login", "", fmt.Sprintf(`{"username":%q,"password":%q}`, name, servertest.Password))
			if a.Status == http.StatusOK {
				tokens = append(tokens, a.JSON()["token"].(string))
			}
			return a.Status == http.StatusOK
		})
	}
	many := func(n int, part string) string { return strings.Repeat(part, n/len(part)) }
	objects := func(n int) string { return "[" + many(n, `{"":0},`) + "0]" }
	file := func(text string) string {
		body, err := json.Marshal(map[string]string{"text": text})
		require.NoError(t, err)
		return string(body)
	}
	values := "name: [" + many(118_000, "a,") + "a]\n" // just below the limit of pkg/job/protocol
	for _, attack := range []struct {
		name, method, path, body string
		requests                 int
		signedIn                 bool
		header                   http.Header
	}{
		{name: "objects of strangers", method: "POST", path: "/oauth/token", body: objects(100_000), requests: 390},
		{name: "short objects of strangers", method: "POST", path: "/oauth/token", body: objects(8000), requests: 390},
		{name: "forms of strangers", method: "POST", path: "/oauth/token", body: "a=b" + many(8000, "&c"), requests: 390},
		{name: "texts of strangers", method: "POST", path: "/api/v2/authn/basic/login", body: `{"username":"` + many(100_000, "a") + `"}`, requests: 390},
		{name: "queries of strangers", method: "GET", path: "/api/v2/info?a" + many(50_000, "&b"), requests: 390},
		{name: "headers of strangers", method: "GET", path: "/api/v2/info", requests: 390, header: headers(4000, "")},
		{name: "objects of people", method: "POST", path: "/api/v3/jobs", body: objects(3 << 20), requests: 8, signedIn: true},
		{name: "shorter objects of people", method: "POST", path: "/api/v3/jobs", body: objects(1 << 20), requests: 64, signedIn: true},
		{name: "files of people", method: "POST", path: "/api/v3/jobs?check", body: file(values), requests: 64, signedIn: true},
		{name: "files that are escaped", method: "POST", path: "/api/v3/jobs?check", body: `{"text":"` + many(1_200_000, `\u0061`) + `"}`, requests: 64, signedIn: true},
		{name: "files as OpenPAI's clients send them", method: "POST", path: "/api/v2/jobs", body: values, requests: 64, signedIn: true},
		{name: "templates", method: "POST", path: "/api/v3/templates", body: objects(1 << 20), requests: 64, signedIn: true},
		{name: "values of changes", method: "PUT", path: "/api/v2/users/me", body: `{"data":{"extension":{"a":` + objects(60_000) + `}}}`, requests: 390, signedIn: true},
	} {
		t.Run(attack.name, func(t *testing.T) {
			programs.ResetPeak(t, p.Pid())
			said := sync.Map{}
			var all sync.WaitGroup
			for i := range attack.requests {
				all.Go(func() {
					r, err := http.NewRequestWithContext(t.Context(), attack.method, p.URL+attack.path, strings.NewReader(attack.body))
					if !assert.NoError(t, err) {
						return
					}
					for key, values := range attack.header {
						r.Header[key] = values
					}
					if attack.signedIn {
						r.Header.Set("Authorization", "Bearer "+tokens[i%len(tokens)])
					}
					resp, err := p.Client.Do(r)
					if err != nil {
						said.LoadOrStore(err.Error(), "")
						return
					}
					text, _ := io.ReadAll(io.LimitReader(resp.Body, 300))
					_ = resp.Body.Close()
					said.LoadOrStore(resp.Status, string(text))
				})
			}
			all.Wait()
			said.Range(func(status, text any) bool { t.Logf("%s: %.200s", status, text); return true })
			peak := programs.Peak(t, p.Pid())
			t.Logf("peak %d MiB", peak>>20)
			assert.Less(t, peak, int64(memoryLimit))
		})
	}
	assert.Equal(t, http.StatusOK, p.Do("GET", "/api/v3/whoami", tokens[0], "").Status, "it is the same program")
}

func headers(n int, value string) http.Header {
	out := http.Header{}
	for i := range n {
		out[fmt.Sprintf("A%d", i)] = []string{value}
	}
	return out
}

package client

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/config/strictyaml"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/job"
	fapi "github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/job/logs"
	"github.com/openpai/paictl/pkg/job/protocol"
	"github.com/openpai/paictl/pkg/node/logstore/logapi"
	"github.com/openpai/paictl/pkg/secret"
	"github.com/openpai/paictl/pkg/server/v3/api"
)

// to returns the jobs of a server whose handler is h.
func to(t *testing.T, h http.HandlerFunc) *Jobs {
	t.Helper()
	srv := httptest.NewTLSServer(h)
	t.Cleanup(srv.Close)
	s, err := New(Options{URL: srv.URL, CA: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw}), Tokens: renewing{}, Version: "test"})
	require.NoError(t, err)
	return &Jobs{Server: s, Name: "ann"}
}

// renewing provides a first token, and a second token if the server rejects the first token.
type renewing struct{}

func (renewing) Access(context.Context) (secret.String, error) { return "first", nil }

func (renewing) Renewed(_ context.Context, refused secret.String) (secret.String, error) {
	if refused != "first" {
		return "", errors.New("no more")
	}
	return "second", nil
}

func fail(w http.ResponseWriter, status int, e api.Error) {
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(e)
}

func TestAddressesOfServers(t *testing.T) {
	for text, want := range map[string]string{"gpu.example.org": "https://gpu.example.org", "https://10.0.0.1:8443/": "https://10.0.0.1:8443", "https://GPU/x": "https://gpu"} {
		u, err := ParseURL(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, u.String())
	}
	for _, text := range []string{"http://gpu", "ftp://gpu", "https://", "https://ann:geheim@gpu", "https://gpu/?token=geheim", "https://gpu#access_token=geheim", "::"} {
		_, err := ParseURL(text)
		require.Error(t, err, text)
		assert.NotContains(t, err.Error(), "geheim")
		assert.NotEmpty(t, hint.Of(err))
	}
}

func TestAnAuthorityIsShownOnlyWhereItSignsTheServersName(t *testing.T) {
	srv := httptest.NewTLSServer(http.NotFoundHandler())
	defer srv.Close()
	at, err := ParseURL(srv.URL)
	require.NoError(t, err)
	shown, err := UntrustedCertificate(t.Context(), at)
	require.NoError(t, err)
	assert.Equal(t, Fingerprint(srv.Certificate().Raw), shown.Fingerprint())
	read, err := ParseFingerprint("sha256:" + strings.ToLower(strings.ReplaceAll(shown.Fingerprint(), ":", "")))
	require.NoError(t, err)
	assert.Equal(t, shown.Fingerprint(), read)
	_, err = look([]*x509.Certificate{srv.Certificate()}, "other.invalid")
	require.Error(t, err, "the certificate is for another name")
}

func TestAProgramWithATokenIsToldOfTheVariableForAnAuthority(t *testing.T) {
	srv := httptest.NewUnstartedServer(http.NotFoundHandler())
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.StartTLS()
	defer srv.Close()
	for remedy, tokens := range map[string]Tokens{"PAICTL_CA": Fixed("token"), "paictl login": renewing{}} {
		s, err := New(Options{URL: srv.URL, Tokens: tokens})
		require.NoError(t, err)
		s.patience = 0
		_, err = s.WhoAmI(t.Context())
		require.ErrorContains(t, err, "unknown authority")
		assert.Contains(t, hint.Of(err), remedy)
	}
}

func TestATokenThatIsRefusedIsRenewedOnce(t *testing.T) {
	var seen []string
	c := to(t, func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.Header.Get("Authorization"))
		if r.Header.Get("Authorization") != "Bearer second" {
			fail(w, http.StatusUnauthorized, api.Error{Code: "UnauthorizedUserError", Message: "no"})
			return
		}
		_ = json.NewEncoder(w).Encode(api.WhoAmI{Name: "ann"})
	})
	me, err := c.WhoAmI(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "ann", me.Name)
	assert.Equal(t, []string{"Bearer first", "Bearer second"}, seen)
}

func TestAServerThatIsRenewedIsAskedAgain(t *testing.T) {
	asked := 0
	keys := map[string]bool{}
	c := to(t, func(w http.ResponseWriter, r *http.Request) {
		asked++
		keys[r.Header.Get(api.IdempotencyKey)] = true
		if asked == 1 {
			w.Header().Set("Retry-After", "0")
			fail(w, http.StatusServiceUnavailable, api.Error{Code: "UnavailableError", Message: "not now"})
			return
		}
		if asked == 2 {
			panic(http.ErrAbortHandler) // the answer is lost
		}
		_ = json.NewEncoder(w).Encode(api.Submitted{Outcome: job.Repeated})
	})
	outcome, err := c.Submit(t.Context(), &Request{Text: []byte("x")}, job.SubmitOptions{})
	require.NoError(t, err)
	assert.Equal(t, job.Repeated, outcome)
	assert.Equal(t, 3, asked)
	assert.Len(t, keys, 1, "and the server can tell that it is the same")
	assert.NotContains(t, keys, "")

	asked = 0
	_, err = c.Stop(t.Context(), &job.Job{User: "ann", Name: "train"})
	require.ErrorContains(t, err, "not now")
	assert.Equal(t, 1, asked, "what isn't safe to repeat is not repeated")
}

func TestFindingsHaveTheNameOfTheFileHere(t *testing.T) {
	c := to(t, func(w http.ResponseWriter, r *http.Request) {
		in := api.Submission{}
		assert.NoError(t, json.NewDecoder(r.Body).Decode(&in))
		assert.Equal(t, "job.yaml", in.File)
		assert.Equal(t, "true", r.URL.Query().Get("check"))
		_, known := protocol.Parse("job.yaml", []byte(in.Text))
		fail(w, http.StatusBadRequest, api.Error{Code: "InvalidProtocolError", Message: "1 problem",
			Findings: append(known, strictyaml.Finding{File: "job.yaml", Line: 7, Column: 3, Field: "defaults.virtualCluster", Rule: "job/vc", Severity: strictyaml.Error, Message: "there is none"})})
	})
	text := []byte("protocolVersion: 2\nname: x\ntype: job\n")
	_, reported := protocol.Parse("/home/ann/my.yaml", text)
	require.NotEmpty(t, reported)
	_, found, err := c.Check(t.Context(), []Request{{File: "/home/ann/my.yaml", Text: text, Reported: reported}}, false)
	require.NoError(t, err)
	require.Len(t, found, 1, "and those that were reported aren't reported again")
	assert.Contains(t, found[0].String(), "/home/ann/my.yaml:7:3: defaults.virtualCluster: there is none")
}

func TestWhatTheServerSaysOfAJobThatIsNotThereIsWhatPkgJobSays(t *testing.T) {
	c := to(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/new") {
			fail(w, http.StatusNotFound, api.Error{Code: "NoApiError", Message: "no"})
			return
		}
		fail(w, http.StatusNotFound, api.Error{Code: "NoJobError", Message: "It is not found."})
	})
	j, err := c.Resolve(t.Context(), "ann", "bob/train")
	require.EqualError(t, err, `user bob has no job "train"`)
	assert.True(t, job.IsNotFound(err))
	assert.Equal(t, "bob/train", j.Title())
	_, err = c.Resolve(t.Context(), "ann", "a b")
	assert.True(t, job.IsNotFound(err), "and the server isn't asked for what can't be a name")
	err = explained(c.ask(t.Context(), get(api.Prefix+"/new", nil), nil))
	require.ErrorContains(t, err, "it is older than this paictl")
}

// broken returns a client of a server that streams the frames of the next try on each connection. The server interrupts all tries except the
// last.
func broken(t *testing.T, tries ...[]api.Frame) (*Jobs, *[]string) {
	var queries []string
	c := to(t, func(w http.ResponseWriter, r *http.Request) {
		n := len(queries)
		queries = append(queries, r.URL.RawQuery)
		for _, f := range tries[n] {
			_ = json.NewEncoder(w).Encode(f)
		}
		w.(http.Flusher).Flush()
		if n < len(tries)-1 {
			panic(http.ErrAbortHandler)
		}
	})
	return c, &queries
}

func line(task string, second int, text string) api.Frame {
	return api.Frame{Line: &logs.Line{Task: task, Line: logapi.Line{Stamp: fmt.Sprintf("2026-01-01T00:00:%02dZ", second), Text: []byte(text)}}}
}

func TestLogsGoOnAfterTheLastLine(t *testing.T) {
	c, queries := broken(t,
		[]api.Frame{line("a[0]", 1, "1"), line("b[0]", 1, "x"), line("a[0]", 2, "2"), line("a[0]", 2, "2")},
		[]api.Frame{line("a[0]", 1, "1"), line("a[0]", 2, "2"), line("a[0]", 2, "2"), line("a[0]", 2, "2 again"), line("b[0]", 1, "x"), line("b[0]", 3, "y"), line("c[0]", 1, "new"), {End: true}})
	var got, problems []string
	o := logs.Options{Selection: logs.Selection{Task: logs.All, Attempt: logs.All}, Follow: true, Tail: 5, Problem: func(err error) { problems = append(problems, err.Error()) }, Note: func(string) {}}
	require.NoError(t, c.Logs(t.Context(), &job.Job{User: "ann", Name: "train"}, o, func(l logs.Line) error {
		got = append(got, l.Task+" "+string(l.Text))
		return nil
	}))
	assert.Equal(t, []string{"a[0] 1", "b[0] x", "a[0] 2", "a[0] 2", "a[0] 2 again", "b[0] y", "c[0] new"}, got)
	assert.Len(t, problems, 1)
	assert.Contains(t, (*queries)[0], "tail=5")
	assert.NotContains(t, (*queries)[1], "tail")
	assert.Contains(t, (*queries)[1], "since=")
}

func TestLogsThatCannotBeReadNowEndUnlessTheyAreFollowed(t *testing.T) {
	c, _ := broken(t, []api.Frame{{Error: &api.Error{Code: "UnavailableError", Message: "the job controller doesn't answer", Remedy: "start it"}}})
	c.patience = 0
	err := c.Logs(t.Context(), &job.Job{User: "ann", Name: "train"}, logs.Options{Problem: func(error) {}, Note: func(string) {}}, func(logs.Line) error { return nil })
	require.EqualError(t, err, "the job controller doesn't answer")
	assert.Equal(t, "start it", hint.Of(err))
}

func TestWhoeverTakesNoMoreLinesEndsThem(t *testing.T) {
	c, queries := broken(t, []api.Frame{line("a[0]", 1, "1"), {End: true}})
	full := errors.New("no space left")
	o := logs.Options{Problem: func(error) {}, Note: func(string) {}}
	require.ErrorIs(t, c.Logs(t.Context(), &job.Job{User: "ann", Name: "train"}, o, func(logs.Line) error { return full }), full)
	assert.Len(t, *queries, 1)
}

func TestFollowingSurvivesTheLossOfTheServer(t *testing.T) {
	state := func(s string) api.Frame { return api.Frame{Detail: &job.Detail{Row: job.Row{Job: fapi.Job{State: s}}}} }
	c, _ := broken(t, []api.Frame{state("waiting"), {}}, []api.Frame{state("running"), state("succeeded"), {End: true}})
	var seen, told []string
	require.NoError(t, c.Follow(t.Context(), &job.Job{User: "ann", Name: "train"}, func(d *job.Detail) bool {
		seen = append(seen, d.State)
		return !job.Phase(d.State).Done()
	}, func(err error) { told = append(told, fmt.Sprint(err)) }))
	assert.Equal(t, []string{"waiting", "running", "succeeded"}, seen)
	assert.Len(t, told, 2)
	assert.Equal(t, "<nil>", told[1])

	c = to(t, func(w http.ResponseWriter, _ *http.Request) {
		fail(w, http.StatusForbidden, api.Error{Code: "ForbiddenUserError", Message: "it isn't yours"})
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	require.ErrorContains(t, c.Follow(ctx, &job.Job{User: "ann", Name: "train"}, func(*job.Detail) bool { return true }, func(error) {}), "it isn't yours")
}

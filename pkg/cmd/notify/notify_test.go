package notify

import (
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cmdutil"
	peoplev1 "github.com/openpai/paictl/pkg/people/v1"
	"github.com/openpai/paictl/pkg/server/v3/api"
	"github.com/openpai/paictl/pkg/ui/iostreams"
)

// server is a pai-server where the user ann is signed in.
type server struct {
	now   api.Notifications
	asked []string
	sent  []api.NotificationsChange
	// looks holds the results of the test mail. Each query after the test returns the next result.
	looks []string
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if r.URL.Path == "/api/v3/whoami" {
		_ = json.NewEncoder(w).Encode(api.WhoAmI{Name: "ann"})
		return
	}
	s.asked = append(s.asked, r.Method+" "+r.URL.Path)
	if r.Method == http.MethodPut {
		var c api.NotificationsChange
		_ = json.NewDecoder(r.Body).Decode(&c)
		s.sent = append(s.sent, c)
	}
	if r.Method == http.MethodGet && len(s.looks) > 0 {
		s.now.MailTest, s.looks = s.looks[0], s.looks[1:]
	}
	_ = json.NewEncoder(w).Encode(s.now)
}

func start(t *testing.T, now api.Notifications) *server {
	t.Helper()
	s := &server{now: now}
	tls := httptest.NewTLSServer(s)
	t.Cleanup(tls.Close)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: tls.Certificate().Raw}), 0o600))
	for name, value := range map[string]string{"PAICTL_SERVER": tls.URL, "PAICTL_TOKEN": "token", "PAICTL_CA": ca, "XDG_CONFIG_HOME": t.TempDir(), "KUBECONFIG": ""} {
		t.Setenv(name, value)
	}
	return s
}

func run(t *testing.T, stdin string, args ...string) (out, errOut string, err error) {
	t.Helper()
	f := cmdutil.New("v1")
	io, in, stdout, stderr := iostreams.Test()
	f.IO = io
	in.WriteString(stdin)
	cmd := NewCmdNotify(f)
	cmd.SetArgs(args)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err = cmd.ExecuteContext(t.Context())
	return stdout.String(), stderr.String(), err
}

var mine = api.Notifications{User: "ann", Chosen: true, Events: []peoplev1.NoticeEvent{peoplev1.NoticeFailed, peoplev1.NoticeWaiting, peoplev1.NoticeStopping},
	Required: []peoplev1.NoticeEvent{peoplev1.NoticeStopping}, WaitMinutes: 90, Mail: true, Webhook: "slack", Problems: []string{"the account has no \x1b[1me-mail address"}}

func TestChoicesAreShown(t *testing.T) {
	s := start(t, mine)
	out, _, err := run(t, "", "show")
	require.NoError(t, err)
	for _, line := range []string{`Notices: +failed, waiting, stopping`, `Required: +stopping \(by the administrator: .*`, `Waiting: +after 1h30m0s`, `Mail: +on, but the account has no address`, `Webhook: +slack`,
		`Weekly report: +off`, `Problem: +the account has no .*e-mail address`} {
		assert.Regexp(t, "(?m)^"+line+"$", out)
	}
	assert.NotContains(t, out, "\x1b")
	assert.Equal(t, []string{"GET /api/v3/users/ann/notifications"}, s.asked)
	out, _, err = run(t, "", "show", "--user", "bob", "-o", "json")
	require.NoError(t, err)
	var n api.Notifications
	require.NoError(t, json.Unmarshal([]byte(out), &n))
	assert.Equal(t, int32(90), n.WaitMinutes)
	assert.Equal(t, "GET /api/v3/users/bob/notifications", s.asked[1])
}

func TestChoicesAreChanged(t *testing.T) {
	keep := &api.OwnWebhook{}
	for name, c := range map[string]struct {
		args  []string
		stdin string
		want  api.NotificationsChange
		says  string
	}{
		"add and remove": {[]string{"--add", "preempted", "--remove", "failed,waiting"}, "", api.NotificationsChange{Events: []peoplev1.NoticeEvent{peoplev1.NoticeStopping, peoplev1.NoticePreempted}, WaitMinutes: 90, Mail: true, Webhook: keep}, ""},
		"replace":        {[]string{"--events", "finished"}, "", api.NotificationsChange{Events: []peoplev1.NoticeEvent{peoplev1.NoticeFinished}, WaitMinutes: 90, Mail: true, Webhook: keep}, "stopping stays: the administrator requires this notice\n"},
		"wait":           {[]string{"--wait", "2h", "--mail=false"}, "", api.NotificationsChange{Events: mine.Events, WaitMinutes: 120, Webhook: keep}, ""},
		"no webhook":     {[]string{"--no-webhook", "--weekly-report"}, "", api.NotificationsChange{Events: mine.Events, WaitMinutes: 90, Mail: true, WeeklyReport: true}, ""},
		"another webhook": {[]string{"--webhook", "feishu", "--webhook-stdin", "--webhook-signed"}, "https://hooks.example.org/S3CRET\nSIGN\n",
			api.NotificationsChange{Events: mine.Events, WaitMinutes: 90, Mail: true, Webhook: &api.OwnWebhook{Type: "feishu", URL: "https://hooks.example.org/S3CRET", SigningSecret: "SIGN"}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, mine)
			out, errOut, err := run(t, c.stdin, append([]string{"set"}, c.args...)...)
			require.NoError(t, err)
			assert.Equal(t, []api.NotificationsChange{c.want}, s.sent)
			assert.Equal(t, c.says, errOut)
			assert.NotContains(t, out, "S3CRET")
		})
	}
}

func TestWrongChoicesAreRefused(t *testing.T) {
	s := start(t, mine)
	for name, args := range map[string][]string{
		"nothing": {"set"}, "unknown": {"set", "--add", "idle"}, "both": {"set", "--events", "failed", "--add", "waiting"}, "a short wait": {"set", "--wait", "5s"}, "a long wait": {"set", "--wait", "721h"},
		"a type": {"set", "--webhook", "irc"}, "two webhooks": {"set", "--webhook", "slack", "--no-webhook"}, "no terminal": {"set", "--webhook", "slack"}, "an address without a type": {"set", "--webhook-stdin"},
		"required": {"set", "--remove", "stopping"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := run(t, "", args...)
			assert.Equal(t, cmdutil.ExitUsage, cmdutil.ExitCode(err), err)
		})
	}
	assert.Empty(t, s.sent)
	_, _, err := run(t, "", "set", "--remove", "stopping")
	assert.ErrorContains(t, err, "the administrator requires this notice")
}

func TestNoticesAreTurnedOff(t *testing.T) {
	s := start(t, mine)
	out, _, err := run(t, "", "off")
	require.NoError(t, err)
	assert.Equal(t, []api.NotificationsChange{{Events: []peoplev1.NoticeEvent{}, Mail: true}}, s.sent)
	assert.Contains(t, out, "they can't be turned off", "what stays is said")
	_, _, err = run(t, "", "reset")
	require.NoError(t, err)
	assert.Equal(t, "DELETE /api/v3/users/ann/notifications", s.asked[len(s.asked)-1])
}

// aTest runs "paictl notify test" without pauses.
func aTest(t *testing.T, timeout time.Duration) (string, error) {
	t.Helper()
	f := cmdutil.New("v1")
	io, _, stdout, _ := iostreams.Test()
	f.IO = io
	opts := &TestOptions{Timeout: timeout, Every: time.Nanosecond}
	cmd := &cobra.Command{RunE: func(cmd *cobra.Command, _ []string) error { return opts.run(cmd.Context()) }}
	opts.addFlags(f, cmd)
	cmd.SetArgs(nil)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err := cmd.ExecuteContext(t.Context())
	return stdout.String(), err
}

func TestATestMessageIsAwaited(t *testing.T) {
	now := mine
	now.MailTest = "waiting"
	s := start(t, now)
	s.looks = []string{"waiting", "unknown", "sent"}
	out, err := aTest(t, time.Minute)
	require.NoError(t, err)
	assert.Equal(t, "mail: sent\n", out)
	assert.Equal(t, "POST /api/v3/users/ann/notifications/test", s.asked[0])
	s.now.MailTest, s.looks = "waiting", []string{"lost"}
	_, err = aTest(t, time.Minute)
	require.EqualError(t, err, "the test message by mail couldn't be sent")
	s.now.MailTest = "waiting"
	_, err = aTest(t, time.Nanosecond)
	require.EqualError(t, err, "the test message by mail isn't sent yet; it is retried for a day")
	s.now.MailTest = ""
	_, err = aTest(t, time.Minute)
	require.ErrorContains(t, err, "no message is sent")
}

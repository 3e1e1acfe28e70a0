package e2e

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	actions "github.com/openpai/paictl/pkg/alerthandler/v1"
	"github.com/openpai/paictl/pkg/audit"
	v1 "github.com/openpai/paictl/pkg/job/v1"
)

// TestTheAlertHandlerActs makes policies act on real alerts of simulated GPUs. An idle job is stopped after its owner has received a mail. Machines
// with broken GPUs are drained, repaired and returned, or they stay out of service. The handler is killed at each step. Forged requests and alerts
// change nothing.
func TestTheAlertHandlerActs(t *testing.T) {
	h := newHandled(t)
	// The idle job is submitted first, because its alert and its grace period take minutes. The other parts of the test run during that time.
	h.submitAs("ida", idles)
	h.submitAs("mia", steady)
	// Both gangs need two whole machines. There are four machines, and ida's job uses a GPU of a third.
	h.submit(t, jobFile(t, fmt.Sprintf(gangOfTwo, "moves", "echo ready; sleep 1000000")))

	t.Run("a mail server that comes back sends the notice", h.ownerIsTold)
	t.Run("people who forge change nothing", h.forgersGetNothing)
	t.Run("a machine is drained, reset, checked and returned", h.machineIsRepaired)
	t.Run("the idle job is stopped, and says why", h.idleJobIsStopped)
	t.Run("a gang whose GPU falls off the bus runs elsewhere, and the machine stays out", h.machineStaysOut)
	t.Run("one more machine is refused", h.shareHolds)
	t.Run("a person returns the machine", h.personReturnsIt)
	t.Run("secrets are shown nowhere", h.showsNoSecret)
}

// handled is a cluster in which alerts make the handler act. It also contains the receivers of the handler's notices.
type handled struct {
	*jobs
	*accounts
	mail  *mailServer
	hook  *webhook
	known map[string]bool // Actions from before the test
	out   string          // the machine that stays out
	kills int
}

// grace is the grace period of the policy. It is long enough to kill the handler, and for the next handler to send the notice.
const grace = 3 * time.Minute

const administratorsMail = "ops@e2e.example.org"

// newHandled starts the services. Only the configuration shortens durations: a job counts as idle after a minute instead of two hours, and
// Prometheus reads the GPUs every 10 seconds. With the defaults, the test would take three hours.
func newHandled(t *testing.T) *handled {
	t.Helper()
	j := newJobs(t)
	h := &handled{jobs: j, accounts: &accounts{t: t, server: "https://" + j.address(0), homes: map[string]string{"ida": t.TempDir(), "mia": t.TempDir()}},
		mail: newMailServer(t, j.gateway()), hook: newWebhook(t, j.gateway()), known: map[string]bool{}}
	j.set("prometheus", map[string]any{
		"scrape": map[string]any{"interval": "10s", "timeout": "9s"}, "alerts": map[string]any{"disabled": []any{"JobGpusIdle", "NodeClockNotSynchronised"}},
		"customRules": map[string]any{"soon": map[string]any{"groups": []any{map[string]any{"name": "soon", "interval": "10s", "rules": []any{idleSoon(t)}}}}},
	})
	j.set("alert-handler", map[string]any{
		"policies": []any{
			// All simulated GPUs are idle, including the GPUs of ann's gangs, so the policy must except ann.
			map[string]any{"name": "idle-jobs", "alerts": map[string]any{"alertname": "JobGpusIdle"}, "exempt": map[string]any{"tags": []any{"keep"}, "users": []any{"ann"}},
				"dryRun": false, "steps": []any{map[string]any{"do": "stop-job", "grace": grace.String()}}},
			map[string]any{"name": "broken-gpus", "alerts": map[string]any{"alertname": "GpuXidFatal|GpuMemoryErrors"}, "dryRun": false,
				"steps": []any{map[string]any{"do": "drain"}, map[string]any{"do": "reset-gpu"}, map[string]any{"do": "uncordon"}}},
		},
		"notifications": map[string]any{
			"smtp": map[string]any{"host": h.mail.host, "port": h.mail.port, "tls": "starttls", "ca": h.mail.ca, "from": "cluster@e2e.example.org",
				"username": mailUser, "password": mailLogin},
			"webhooks":        []any{map[string]any{"name": "ops", "type": "generic", "secretUrl": h.hook.url}},
			"webhookNetworks": []any{h.mail.host + "/32"}, "administrators": []any{administratorsMail}, "perHour": 100,
		},
	})
	j.push()
	started := ok(t, j.args("service", "start", "-n", "rest-server", "-n", "prometheus", "-n", "alert-manager", "-n", "alert-handler")...)
	h.fingerprint = regexp.MustCompile(`[0-9A-F]{2}(:[0-9A-F]{2}){31}`).FindString(started.stdout + started.stderr)
	require.NotEmpty(t, h.fingerprint, started)
	for _, a := range h.actions() {
		h.known[a.Name] = true
	}
	const password = "correct horse battery"
	for who := range h.homes {
		cmd, _, said := command(t.Context(), t, j.args("user", "add", who, "--email", who+"@e2e.example.org", "--password-stdin")...)
		cmd.Stdin = strings.NewReader(password + "\n")
		require.NoError(t, cmd.Run(), "%s", said)
		h.login(who, password, "--user", who)
	}
	return h
}

// idleSoon returns the rule JobGpusIdle with a minute in place of two hours.
func idleSoon(t testing.TB) map[string]any {
	t.Helper()
	file := node(t, read(t, "../../templates/charts/prometheus/files/rules/gpus.yaml"))
	for _, rule := range file["groups"].([]any)[0].(map[string]any)["rules"].([]any) {
		if r := rule.(map[string]any); r["alert"] == "JobGpusIdle" {
			require.Contains(t, r["expr"], "[2h]")
			r["expr"], r["for"] = strings.ReplaceAll(r["expr"].(string), "2h", "1m"), "10s"
			r["keep_firing_for"] = "3m" // one scrape that a busy machine misses doesn't end it
			return r
		}
	}
	t.Fatal("there is no rule JobGpusIdle")
	return nil
}

const (
	idles = `protocolVersion: 2
name: idles
type: job
prerequisites: [{name: python, type: dockerimage, uri: "docker.io/openpai/examples-python:3"}]
taskRoles:
  main:
    dockerImage: python
    resourcePerInstance: {cpu: 0.2, memoryMB: 128, gpu: 1}
    commands: ["echo ready; sleep 1000000"]
`
	steady = `protocolVersion: 2
name: steady
type: job
prerequisites: [{name: python, type: dockerimage, uri: "docker.io/openpai/examples-python:3"}]
taskRoles:
  main:
    dockerImage: python
    resourcePerInstance: {cpu: 0.2, memoryMB: 128, gpu: 0}
    commands: ["echo ready; sleep 1000000"]
`
	// gangOfTwo is the job file of a gang on two whole machines.
	gangOfTwo = `protocolVersion: 2
name: %s
type: job
prerequisites: [{name: python, type: dockerimage, uri: "docker.io/openpai/examples-python:3"}]
taskRoles:
  main:
    instances: 2
    dockerImage: python
    resourcePerInstance: {cpu: 0.1, memoryMB: 128, gpu: 8}
    commands: [%q]
`
)

// submitAs submits a job as a person, and waits until the job runs.
func (h *handled) submitAs(who, text string) {
	h.t.Helper()
	h.may(who, "job", "submit", jobFile(h.t, text))
	name := regexp.MustCompile(`(?m)^name: (\S+)`).FindStringSubmatch(text)[1]
	eventually(h.t, 2*time.Minute, name+" runs", func() bool { return strings.Contains(h.as(who, "", "job", "logs", name).stdout, "ready") })
}

// ownerIsTold waits until the owner is notified. At first, the mail server can't be reached.
func (h *handled) ownerIsTold(t *testing.T) {
	eventually(t, 5*time.Minute, "the job's Action is in its grace", func() bool {
		got := of(h.actions(), actions.OperationStopJob, "ida/idles")
		return len(got) == 1 && got[0].Status.Phase == actions.PhaseNoticed
	})
	eventually(t, time.Minute, "the mail server was tried", func() bool {
		return regexp.MustCompile(`pai_alert_handler_notice_failures_total\{channel="mail"\} [1-9]`).Match(h.ask("alert-handler:9095", "/metrics"))
	})
	require.Empty(t, h.mail.of("ida@e2e.example.org", ""))
	h.mail.start(h.t)
	h.kill() // the next one sends it: the record says that it wasn't sent
	const subject = "job ida/idles will be stopped at "
	eventually(t, 90*time.Second, "the mail arrives", func() bool { return len(h.mail.of("ida@e2e.example.org", subject)) > 0 })
	letter := h.mail.of("ida@e2e.example.org", subject)[0]
	assert.Contains(t, letter.Text, "Reason: Job idles of ida holds 1 GPUs of default and doesn't use them\nRequested by: the policy idle-jobs\n")
	assert.Contains(t, letter.Text, `To keep the job, add the tag "keep" to it before then.`)
	assert.Equal(t, "running", h.stateOf(t, "ida", "idles"), "it has its grace")
	eventually(t, time.Minute, "the webhook gets it", func() bool { return len(h.hook.of("", subject)) > 0 })
}

// stateOf returns the state of a person's job.
func (h *handled) stateOf(t *testing.T, who, name string) string {
	t.Helper()
	var job struct{ State string }
	require.NoError(t, json.Unmarshal([]byte(h.may(who, "job", "get", name, "-o", "json")), &job))
	return job.State
}

// posting is a script that sends requests. For each request, its arguments are an address, the value of Authorization, and a body. It prints the
// statuses of the responses.
const posting = `import sys, urllib.error, urllib.request
for at, login, body in zip(*[iter(sys.argv[1:])] * 3):
  try: print(urllib.request.urlopen(urllib.request.Request(at, data=body.encode(), headers={'Content-Type': 'application/json', 'Authorization': login}), timeout=20).status)
  except urllib.error.HTTPError as e: print(e.code)`

// forgersGetNothing checks that ida can't stop mia's job in any way.
func (h *handled) forgersGetNothing(t *testing.T) {
	r := h.as("ida", "", "node", "drain", h.names[1], "--reason", "mine alone")
	assert.NotZero(t, r.code, r)
	r = h.as("ida", "", "action", "list")
	assert.NotZero(t, r.code, r)
	var refused []audit.Record
	eventually(t, time.Minute, "the audit has her request", func() bool {
		refused = h.records("--actor", "ida", "--outcome", audit.Refused)
		return len(refused) > 0
	})
	assert.Equal(t, "POST /api/v3/actions", refused[0].Detail["route"], refused)

	// A job can connect to the services, because flannel enforces no network policies. But it has neither a password nor a token.
	const handler, manager = "http://alert-handler.pai-system.svc.cluster.local:9095/alerts", "http://alert-manager.pai-system.svc.cluster.local:9093/api/v2/alerts"
	labels := `"labels":{"alertname":"JobGpusIdle","user":"mia","job_name":"steady"}`
	webhook := `{"version":"4","alerts":[{"status":"firing",` + labels + `,"startsAt":"2026-01-01T00:00:00Z"}]}`
	out := ok(t, append(h.args("job", "exec", "--user", "ida"), "idles", "--", "python3", "-c", posting,
		handler, "none", webhook, handler, "Bearer guess", webhook, handler, "Basic cGFpOnBhaQ==", webhook, manager, "none", "[{"+labels+"}]", manager, "Basic cGFpOnBhaQ==", "[{"+labels+"}]")...).stdout
	assert.Equal(t, []string{"401", "401", "401", "401", "401"}, strings.Fields(out))

	// An Action has no effect if ida creates it herself, or if the server's account creates it for an operator or for ida.
	uid := h.kubectl("-n pai-jobs get framework " + v1.ObjectName("mia", "steady") + " -o jsonpath='{.metadata.uid}'")
	create := func(account, name, by string) (string, error) {
		return h.try(h.names[0], fmt.Sprintf(`KUBECONFIG=/etc/kubernetes/admin.conf kubectl --as=%s create -f - 2>&1 <<'END'
apiVersion: paictl.openpai.org/v1
kind: Action
metadata: {name: %s}
spec:
  do: stop-job
  job: {object: %s, uid: %s, name: mia/steady}
  by: %s
  reason: forged
  notAfter: %q
END`, account, name, v1.ObjectName("mia", "steady"), uid, by, time.Now().Add(time.Hour).UTC().Format(time.RFC3339)))
	}
	said, err := create("ida", "forged-a", "{kind: operator, name: root}")
	require.Error(t, err)
	assert.Contains(t, said, "forbidden")
	const server = "system:serviceaccount:pai-system:rest-server"
	said, err = create(server, "forged-b", "{kind: operator, name: root}")
	require.Error(t, err)
	assert.Contains(t, said, "the server may request operations for persons")
	said, err = create(server, "forged-c", "{kind: person, name: ida, uid: "+h.kubectl(`get users.paictl.openpai.org -o jsonpath='{.items[?(@.spec.name=="ida")].metadata.uid}'`)+"}")
	require.NoError(t, err, said)
	eventually(t, time.Minute, "the handler refuses it", func() bool {
		a, over := ended(h.actions(), actions.OperationStopJob, "mia/steady")
		return over && a.Status.Phase == actions.PhaseRefused
	})
	a, _ := ended(h.actions(), actions.OperationStopJob, "mia/steady")
	assert.Contains(t, a.Status.Message, "ida is no longer an administrator")
	assert.Equal(t, audit.Refused, h.recorded(t, a).Outcome)
	assert.Equal(t, "running", h.stateOf(t, "mia", "steady"))
	assert.Empty(t, of(h.actions(), actions.OperationDrain, h.names[1]))
}

// hostsOf returns the machines of a gang of two pods, or nil unless both pods run.
func (h *handled) hostsOf(t *testing.T, name string) (out []string) {
	t.Helper()
	for _, p := range h.podsOf(t, name) {
		if p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil {
			out = append(out, p.Spec.NodeName)
		}
	}
	if len(out) != 2 {
		return nil
	}
	return out
}

// runs waits until a gang runs, and returns one of the gang's machines.
func (h *handled) runs(t *testing.T, name string) string {
	t.Helper()
	h.is(t, name, "running")
	eventually(t, time.Minute, "both pods of "+name+" run", func() bool { return len(h.hostsOf(t, name)) == 2 })
	return h.hostsOf(t, name)[0]
}

// avoids reports whether a gang runs only on machines other than the given machine.
func (h *handled) avoids(t *testing.T, name, machine string) bool {
	t.Helper()
	at := h.hostsOf(t, name)
	return len(at) == 2 && !slices.Contains(at, machine)
}

// cordoned reports whether a machine is cordoned.
func (h *handled) cordoned(machine string) bool {
	return h.kubectl("get node "+machine+" -o jsonpath='{.spec.unschedulable}'") == "true"
}

// machineIsRepaired breaks a GPU of a gang with an error that a reset repairs. The handler is killed at each step.
func (h *handled) machineIsRepaired(t *testing.T) {
	sick := h.runs(t, "moves")
	ok(t, "sandbox", "fault", "gpu", "--dir", h.dir, sick, "2", "xid=48")
	began, kills := time.Now(), h.kills
	target := "GPU 2 of " + sick
	h.killedAtEachStep(t, 6*time.Minute, "the machine is returned", func(all []actions.Action) bool {
		_, over := ended(all, actions.OperationUncordon, target)
		return over
	})
	t.Logf("it was returned after %.0f s; the handler was killed %d times", time.Since(began).Seconds(), h.kills-kills)
	all := h.actions()
	for _, do := range []actions.Operation{actions.OperationDrain, actions.OperationResetGPU, actions.OperationUncordon} {
		a, over := ended(all, do, target)
		require.True(t, over, "%s is done once: %v", do, of(all, do, target))
		assert.Equal(t, actions.PhaseSucceeded, a.Status.Phase, a.Status.Message)
		assert.Contains(t, a.Spec.Reason, target+" has failed (XID 48)")
		assert.Equal(t, audit.Done, h.recorded(t, a).Outcome)
	}
	assert.False(t, h.cordoned(sick))
	assert.NotContains(t, ok(t, h.args("node", "gpu", "list", sick, "--sick")...).stdout, "XID")
	// The reset takes only seconds, so the gang may run on the same machine again.
	eventually(t, time.Minute, "the gang runs again", func() bool { return len(h.hostsOf(t, "moves")) == 2 })
	f := h.framework(t, "moves")
	assert.Equal(t, int32(1), f.Status.RetryPolicyStatus.TotalRetriedCount)
	assert.Zero(t, f.Status.RetryPolicyStatus.AccountableRetriedCount, "the machine is at fault")
	ok(t, h.job("stop", "moves")...)
	h.ended(t, "moves", "stopped", "")
}

// idleJobIsStopped waits for the end of the grace period, and kills the handler while it acts.
func (h *handled) idleJobIsStopped(t *testing.T) {
	var a *actions.Action
	h.killedAtEachStep(t, grace+2*time.Minute, "the job's Action ends", func(all []actions.Action) (over bool) {
		a, over = ended(all, actions.OperationStopJob, "ida/idles")
		return over
	})
	require.Equal(t, actions.PhaseSucceeded, a.Status.Phase, a.Status.Message)
	eventually(t, 2*time.Minute, "the job has stopped", func() bool { return h.stateOf(t, "ida", "idles") == "stopped" })
	const why = "Job idles of ida holds 1 GPUs of default and doesn't use them (policy idle-jobs)"
	assert.Contains(t, h.as("ida", "", "job", "why", "idles").stdout, why)
	assert.Contains(t, h.may("ida", "job", "get", "idles"), why, "its page says it, too")
	record := h.recorded(t, a)
	assert.Equal(t, audit.Done, record.Outcome)
	assert.Equal(t, "ida", record.Owner)
	assert.False(t, a.Status.StartTime.Before(a.Status.ActTime), "not before the time of the notice")
	assert.Regexp(t, `stop-job +ida/idles +policy idle-jobs +Succeeded`, ok(t, h.args("action", "list", "--job", "ida/idles")...).stdout)
	assert.Contains(t, ok(t, h.args("action", "get", a.Name)...).stdout, "Job idles of ida holds 1 GPUs")
	const subject = "job ida/idles was stopped"
	eventually(t, 2*time.Minute, "her second mail arrives", func() bool { return len(h.mail.of("ida@e2e.example.org", subject)) > 0 })
	assert.Contains(t, h.mail.of("ida@e2e.example.org", subject)[0].Text, `"paictl job why idles"`)
	eventually(t, time.Minute, "the webhook gets it", func() bool { return len(h.hook.of("", subject)) > 0 })
	assert.Len(t, h.mail.of("ida@e2e.example.org", ""), 2, "however often the handler was killed")
	assert.Empty(t, h.mail.of("mia@e2e.example.org", ""))
}

// machineStaysOut breaks a GPU of a gang with an error that only a reboot of the machine repairs. The error makes the program of the gang fail, like
// real programs.
func (h *handled) machineStaysOut(t *testing.T) {
	h.submit(t, jobFile(t, fmt.Sprintf(gangOfTwo, "breaks", "until grep -q reason /run/paictl/gpus/gpus.json; do sleep 0.5; done; echo CUDA error; exit 1")))
	h.out = h.runs(t, "breaks")
	ok(t, "sandbox", "fault", "gpu", "--dir", h.dir, h.out, "5", "xid=79")
	began := time.Now()
	eventually(t, time.Minute, "the gang runs elsewhere", func() bool { return h.avoids(t, "breaks", h.out) })
	took := time.Since(began)
	t.Logf("the gang runs elsewhere after %.1f s", took.Seconds())
	assert.Less(t, took, time.Minute)
	target := "GPU 5 of " + h.out
	h.killedAtEachStep(t, 5*time.Minute, "the reset has failed", func(all []actions.Action) bool {
		_, over := ended(all, actions.OperationResetGPU, target)
		return over
	})
	all := h.actions()
	drained, over := ended(all, actions.OperationDrain, target)
	require.True(t, over)
	assert.Equal(t, actions.PhaseSucceeded, drained.Status.Phase, drained.Status.Message)
	reset, _ := ended(all, actions.OperationResetGPU, target)
	assert.Equal(t, actions.PhaseFailed, reset.Status.Phase)
	assert.Contains(t, reset.Status.Message, "it has fallen off the bus; restart the machine")
	assert.Equal(t, audit.Failed, h.recorded(t, reset).Outcome)
	assert.Empty(t, of(all, actions.OperationUncordon, target), "a failed step is the last one")
	assert.True(t, h.cordoned(h.out))
	assert.Contains(t, ok(t, "node", "list", "-p", h.cluster).stdout, "policy broken-gpus")
	const subject = "reset of GPU 5 of "
	eventually(t, 2*time.Minute, "administrators get a mail", func() bool { return len(h.mail.of(administratorsMail, subject)) > 0 })
	assert.Contains(t, h.mail.of(administratorsMail, subject)[0].Text, "it has fallen off the bus")
	eventually(t, time.Minute, "the webhook gets it", func() bool { return len(h.hook.of("", subject)) > 0 })
	assert.Equal(t, int32(1), h.framework(t, "breaks").Status.RetryPolicyStatus.TotalRetriedCount, "the drain disturbs it no more")
	ok(t, h.job("stop", "breaks")...)
}

// shareHolds breaks a GPU of a second machine. Policies may cordon only one of four machines.
func (h *handled) shareHolds(t *testing.T) {
	second := h.names[1]
	if second == h.out {
		second = h.names[2]
	}
	ok(t, "sandbox", "fault", "gpu", "--dir", h.dir, second, "1", "xid=48")
	target := "GPU 1 of " + second
	h.killedAtEachStep(t, 4*time.Minute, "its drain is refused", func(all []actions.Action) bool {
		_, over := ended(all, actions.OperationDrain, target)
		return over
	})
	a, _ := ended(h.actions(), actions.OperationDrain, target)
	assert.Equal(t, actions.PhaseRefused, a.Status.Phase)
	assert.Regexp(t, `1 of \d machines are out of service, and policies may raise that to 1 \(machinesOut: 10 %\)`, a.Status.Message)
	assert.Equal(t, audit.Refused, h.recorded(t, a).Outcome)
	assert.False(t, h.cordoned(second))
	ok(t, "sandbox", "fault", "gpu", "--dir", h.dir, second, "1", "clear")
}

// personReturnsIt restarts the machine, which ends the fault, and then uncordons it.
func (h *handled) personReturnsIt(t *testing.T) {
	require.NotEmpty(t, h.out)
	ok(t, "sandbox", "fault", "gpu", "--dir", h.dir, h.out, "5", "clear")
	ok(t, "sandbox", "stop", "--dir", h.dir, h.out)
	ok(t, "sandbox", "start", "--dir", h.dir, h.out)
	assert.True(t, h.cordoned(h.out), "a start doesn't return it")
	ok(t, h.args("node", "uncordon", h.out, "--reason", "it was restarted", "--wait")...)
	h.isReady(len(h.names))
	assert.False(t, h.cordoned(h.out))
	assert.NotContains(t, ok(t, "node", "list", "-p", h.cluster).stdout, "policy broken-gpus")
}

// showsNoSecret asserts that objects and logs contain neither the password of the mail server nor the address of the webhook.
func (h *handled) showsNoSecret(t *testing.T) {
	shown := h.kubectl("get configmaps,pods,deployments,events,actions.paictl.openpai.org -A -o yaml") + h.kubectl("-n pai-system logs --tail=-1 -l app.kubernetes.io/name=alert-handler")
	assert.NotContains(t, shown, mailLogin)
	assert.NotContains(t, shown, "e2e-Secret-Address-8846")
}

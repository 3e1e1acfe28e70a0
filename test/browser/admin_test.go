package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/config/store"
	"github.com/openpai/paictl/pkg/kube"
	v1 "github.com/openpai/paictl/pkg/people/v1"
	"github.com/openpai/paictl/pkg/scheduler/api"
	"github.com/openpai/paictl/pkg/server/servertest"
	"github.com/openpai/paictl/pkg/server/settings"
	"github.com/openpai/paictl/pkg/services/facts"
	"github.com/openpai/paictl/pkg/services/state"
)

// judge responds in place of pai-scheduler. A change makes a job lose its guarantee. A change that deletes speech is reported to leave a job in
// speech.
func judge(w http.ResponseWriter, r *http.Request) {
	text, _ := io.ReadAll(r.Body)
	out := api.Validation{Valid: true,
		VirtualClusters: []api.ChangedVirtualCluster{{Name: "vision", Before: &api.VirtualCluster{Name: "vision", Guaranteed: 32}, After: &api.VirtualCluster{Name: "vision", Guaranteed: 24}}},
		Changes:         []api.Change{{VC: "vision", Group: "vic/resnet-152", User: "vic", GPUs: 8, Effect: api.Downgraded}}}
	if !strings.Contains(string(text), "speech") {
		out.VirtualClusters = []api.ChangedVirtualCluster{{Name: "speech", Before: &api.VirtualCluster{Name: "speech", Guaranteed: 64}}}
		out.Changes = []api.Change{{VC: "speech", Group: "bob/conformer-s", User: "bob", GPUs: 4, Effect: api.Orphaned}}
	}
	_ = json.NewEncoder(w).Encode(out)
}

// administer adds an administrator, the configuration of virtual clusters, and the state of services to the world.
func (w *world) administer() {
	w.t.Helper()
	w.Person("root", "administrators")
	w.tokens["root"] = w.SignIn("root")
	maps, secrets := w.cluster.Client.CoreV1().ConfigMaps(kube.SystemNamespace), w.cluster.Client.CoreV1().Secrets(kube.SystemNamespace)
	clean := func() {
		ctx := context.WithoutCancel(w.t.Context())
		all, err := maps.List(ctx, metav1.ListOptions{})
		require.NoError(w.t, err)
		for i := range all.Items {
			if name := all.Items[i].Name; strings.HasPrefix(name, store.ConfigMapName) || name == facts.ConfigMap {
				require.NoError(w.t, maps.Delete(ctx, name, metav1.DeleteOptions{}))
			}
		}
		held, err := secrets.List(ctx, metav1.ListOptions{})
		require.NoError(w.t, err)
		for i := range held.Items {
			if name := held.Items[i].Name; strings.HasPrefix(name, store.SecretName) {
				require.NoError(w.t, secrets.Delete(ctx, name, metav1.DeleteOptions{}))
			}
		}
	}
	clean()
	w.t.Cleanup(clean) // other tests use the same API server
	machines := ""
	for i := range 12 {
		machines += fmt.Sprintf("  - {hostname: gpu-%d, hostip: 10.0.0.%d, machine-type: g, roles: [worker]}\n", i+1, i+2)
	}
	s := store.New(w.cluster.Client)
	d, err := s.Draft(w.t.Context(), store.Candidate{Force: true, Files: map[string][]byte{
		config.LayoutFile: []byte("apiVersion: paictl.openpai.org/v1\nkind: Layout\nssh: {username: ubuntu, password: hunter2-of-ssh}\nmachine-sku:\n  m: {mem: 16Gi, cpu: {vcore: 8}, os: debian12}\n  g: {mem: 64Gi, cpu: {vcore: 16}, gpu: {type: a100, count: 8}, os: debian12}\n" +
			"machine-list:\n  - {hostname: m1, hostip: 10.0.0.1, machine-type: m, roles: [master]}\n" + machines),
		config.RolesFile: []byte("apiVersion: paictl.openpai.org/v1\nkind: RoleDefinition\nk8s-role:\n" +
			"  master: {component-list: [etcd, apiserver, controller-manager, scheduler], labels: {pai-master: \"true\"}}\n  worker: {labels: {pai-worker: \"true\"}, workloads: true}\n"),
		config.ServicesFile: []byte("apiVersion: paictl.openpai.org/v1\nkind: ServicesConfiguration\ncluster:\n  common: {cluster-id: lab, data-path: /data}\n  docker-registry: {domain: docker.io, namespace: openpai, docker-tag: v1.2.3}\n" +
			"scheduler:\n  virtualClusters:\n    speech:\n      virtualCells:\n        - {cellType: g-NODE, cellNumber: 8}\n      quota: {perUser: 32}\n    vision:\n      virtualCells:\n        - {cellType: g-NODE, cellNumber: 4}\n"),
		config.KubernetesFile: []byte("apiVersion: paictl.openpai.org/v1\nkind: KubernetesConfiguration\nkubernetes: {managed: false, version: v1.36.3, cluster-name: lab, cluster-dns: [10.0.0.53], load-balance-ip: 10.0.0.1}\n"),
	}})
	require.NoError(w.t, err)
	_, err = s.Push(w.t.Context(), d, store.Entry{By: "ada@desk"})
	require.NoError(w.t, err)

	public, err := s.Public(w.t.Context())
	require.NoError(w.t, err)
	digest, err := facts.Digest(public)
	require.NoError(w.t, err)
	publication, err := facts.Open(w.t.Context(), w.cluster.Client)
	require.NoError(w.t, err)
	at := time.Now().Add(-26 * time.Hour).Truncate(time.Second)
	release := func(chart string, lost ...string) *facts.Release {
		return &facts.Release{Status: facts.StatusDeployed, Revision: 3, Chart: chart, Updated: at, Paictl: "v1.2.3", Configuration: state.ConfigurationCurrent, ConfigMaps: lost}
	}
	require.NoError(w.t, publication.Write(w.t.Context(), &facts.Published{Revision: public.Revision.Number, Configuration: digest, Services: []facts.Service{
		{Name: "grafana", Namespace: kube.SystemNamespace, Wanted: true, Release: release("grafana-1.2.0", "grafana-dashboards")},
		{Name: "node-exporter", Namespace: kube.SystemNamespace, Wanted: true, Release: release("node-exporter-1.0.0")},
		{Name: "alert-manager", Namespace: kube.SystemNamespace, Wanted: true, Absent: state.StateStopped},
		{Name: "watchdog", Namespace: kube.SystemNamespace, Absent: state.StateDisabled},
	}}))
	leases, now := w.cluster.Client.CoordinationV1().Leases(kube.SystemNamespace), metav1.NewMicroTime(time.Now())
	_ = leases.Delete(w.t.Context(), facts.Lease, metav1.DeleteOptions{}) // of another test
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: facts.Lease, Namespace: kube.SystemNamespace}, Spec: coordinationv1.LeaseSpec{AcquireTime: &now}}
	facts.Publish(lease)
	_, err = leases.Create(w.t.Context(), lease, metav1.CreateOptions{})
	require.NoError(w.t, err)
}

// signOut signs out in the browser.
func (b *tab) signOut() {
	b.t.Helper()
	b.run("document.querySelector('.person button').click()")
	b.press("[role=menuitem]", "Sign out")
	b.shows(`document.querySelector('input[name="username"]')`)
}

// field returns the selector of the field with a label.
func (b *tab) field(label string) string {
	b.t.Helper()
	b.has("label", label)
	return "#" + script[string](b.t, b.ctx, fmt.Sprintf("[...document.querySelectorAll('label')].find(e => e.innerText.includes(%q)).htmlFor", label))
}

func TestAnAdministratorsDay(t *testing.T) {
	b := openTab(t)
	w := newWorld(t)
	w.administer()
	s := store.New(w.cluster.Client)

	// Other users see the error of the server.
	b.signIn(w, "/admin/people", "ann")
	b.has(".problem", "ForbiddenUserError")
	b.shows("!document.querySelector('.side').innerText.includes('Administration') && !document.querySelector('.people')")
	b.signOut()
	b.signIn(w, "/", "root")
	b.press(".side a", "Administration")
	b.has(".people", "ann")

	// A person is added to a group. Another administrator changes the person at the same time, and neither change is lost.
	b.fill(".search input", "vic")
	b.shows("location.search === '?keyword=vic' && document.querySelectorAll('.people tbody tr').length === 1")
	b.press(".people a", "vic")
	b.shows("location.pathname === '/admin/people/vic'")
	b.fill(".names select", "speech")
	b.has(".command", "paictl user set vic --group vision --group speech")
	_, err := w.People.Update(t.Context(), "vic", func(u *v1.UserSpec) error { u.Email = "vic@example.org"; return nil })
	require.NoError(t, err)
	b.press(".buttons button", "Save")
	b.has(".problem", "someone else has changed it since you read it")
	b.press(".note button", "Read again")
	b.shows("document.querySelector('input[type=email]').value === 'vic@example.org' && document.querySelector('.names').innerText.includes('speech') && !document.querySelector('.problem')")
	b.press(".buttons button", "Save")
	b.has(".toast", "Saved.")
	p, err := w.People.Person("vic")
	require.NoError(t, err)
	assert.ElementsMatch(t, []string{"vision", "speech"}, p.User.Spec.Groups)
	assert.Equal(t, "vic@example.org", p.User.Spec.Email)

	// Revoked tokens stop working immediately.
	require.Equal(t, 200, w.Do("GET", "/api/v3/whoami", w.tokens["vic"], "").Status)
	b.press("button", "Revoke all")
	b.press("dialog[open] button.primary", "Revoke")
	b.has(".toast", "Revoked.")
	w.Eventually("the token is revoked", func() bool { return w.Do("GET", "/api/v3/whoami", w.tokens["vic"], "").Status == 401 })

	// The server checks a new person. The command that the page shows never contains the password.
	name := fmt.Sprintf("eve-%d", time.Now().Unix())
	b.do(chromedp.Navigate(w.URL + "/admin/people?add=true"))
	b.fill(b.field("Name"), name)
	b.fill("input[type=password]", "short")
	b.press(".buttons button", "Add")
	b.has(".problem", "InvalidParametersError")
	b.fill("input[type=password]", servertest.Password)
	b.shows("!document.querySelector('.command').innerText.includes('horse')")
	b.press(".buttons button", "Add")
	b.shows("location.pathname === '/admin/people/" + name + "'")
	b.press("button", "Remove person")
	b.press("dialog[open] button.primary", "Remove person")
	b.shows("location.pathname === '/admin/people'")
	b.has(".people", "ann")
	b.shows("!document.querySelector('.people').innerText.includes('" + name + "')")

	// In a group, a member is added and the grants are changed.
	b.press(".tabs a", "Groups")
	b.press(".groups a", "vision")
	b.fill(".add-member", "bob")
	b.has(".members", "bob")
	p, err = w.People.Person("bob")
	require.NoError(t, err)
	assert.ElementsMatch(t, []string{"speech", "vision"}, p.User.Spec.Groups)
	b.press(".grant .tick", "see each other's jobs")
	b.has(".command", "paictl group set vision --add-vc vision=see-jobs")
	b.press(".buttons button", "Save")
	b.has(".toast", "Saved.")
	g, err := w.People.Group("vision")
	require.NoError(t, err)
	assert.Equal(t, []v1.VCGrant{{Name: "vision", SeeJobs: true}}, g.Spec.VirtualClusters)

	// The preview of a change to a virtual cluster lists the jobs that would lose their guarantee. The change applies only to the revision that the
	// preview has used.
	b.press(".tabs a", "Virtual clusters")
	b.press(".vc-table a", "vision")
	b.fill(".form input[type=number]", "3")
	b.has(".command", "paictl vc set vision --cells g-NODE=3")
	b.press("button", "Preview")
	b.has(".effects", "vic/resnet-152")
	b.has(".effects", "Loses its guarantee")
	b.has(".diff .plus", "cellNumber: 3")
	a := w.Do("PATCH", "/api/v3/virtual-clusters", w.tokens["root"], `{"changes":[{"name":"vision","perUser":16}],"message":"meanwhile"}`)
	require.Equal(t, 200, a.Status, a.Body)
	b.fill(".apply input", "the new quarter")
	b.press(".apply button", "Apply to revision 1")
	b.has(".problem", "revision 2 was pushed by root")
	b.press(".note button", "Read again")
	b.press(".apply button", "Apply to revision 2")
	b.has(".stored", "Revision 3 is stored")
	r, err := s.Current(t.Context())
	require.NoError(t, err)
	assert.Equal(t, [...]any{3, "root", "the new quarter"}, [...]any{r.Number, r.By, r.Message})

	// A virtual cluster with jobs can't be deleted until the preview has listed these jobs.
	b.do(chromedp.Navigate(w.URL + "/admin/virtual-clusters/speech"))
	b.press(".top button", "Delete")
	b.shows("!document.querySelector('input[name=force]')")
	b.press("button", "Preview")
	b.has(".refused", "speech has 1 job inside")
	b.shows("document.querySelector('.apply button').disabled")
	b.run("document.querySelector('input[name=force]').click()")
	b.press(".apply button:not(:disabled)", "Apply to revision 3")
	b.shows("location.pathname === '/admin/virtual-clusters'")
	r, err = s.Current(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 4, r.Number)

	// The page shows the problems of services, and the commands that repair them.
	b.press(".tabs a", "Services")
	b.has(".services", "grafana-dashboards")
	b.press(".segments button", "Needs attention")
	b.shows("document.querySelectorAll('.services tbody button').length === 1")
	b.press(".services button", "grafana")
	b.has(".command", "paictl service restart -n grafana --force")
	b.shows("location.search === '?state=trouble&open=grafana'")
	b.press(".tabs a", "Alerts")
	b.has(".problem", "NotImplementedError")

	// The audit page lists all changes.
	const changed = "/api/v3/audit?kind=virtual-cluster&outcome=done"
	w.Eventually("the records are kept", func() bool { return strings.Count(w.Do("GET", changed, w.tokens["root"], "").Body, `"id":`) == 3 })
	b.press(".tabs a", "Audit")
	b.has(".audit", "virtual-cluster")
	b.fill("input[name=kind]", "virtual-cluster")
	b.press(".segments button", "Done")
	b.shows("location.search === '?kind=virtual-cluster&outcome=done' && document.querySelectorAll('.audit tbody tr').length === 3")
	b.run("document.querySelector('.audit button.whole').click()")
	b.has(".details", "force")
	b.has(".details", "revision")
	b.run("URL.createObjectURL = b => { b.text().then(t => window.saved = t); return '' }")
	b.press(".top button", "CSV")
	b.shows("window.saved?.startsWith('time,actor,verb,kind,object,') && window.saved.trim().split('\\r\\n').length === 4")

	b.do(chromedp.EmulateViewport(390, 844))
	for _, page := range []string{"people", "people?add=true", "people/vic", "groups", "groups/vision", "virtual-clusters", "virtual-clusters/vision", "services?open=grafana", "alerts", "actions", "audit"} {
		b.do(chromedp.Navigate(w.URL + "/admin/" + page))
		b.shows("document.querySelector('main h1, main .problem')")
		b.shows("document.documentElement.scrollWidth <= 390")
	}
}

// alertmanager runs a stand-in for Alertmanager, which serves firing alerts and stores silences. It returns the address.
func alertmanager(t *testing.T) string {
	t.Helper()
	since := time.Now().Add(-40 * time.Minute).UTC().Format(time.RFC3339)
	var mu sync.Mutex
	silences := map[string]map[string]any{"5e1a": {"id": "5e1a", "createdBy": "ops", "comment": "known since Monday", "startsAt": since, "endsAt": time.Now().Add(3 * time.Hour).UTC().Format(time.RFC3339),
		"matchers": []map[string]any{{"name": "alertname", "value": "GpuIdle", "isRegex": false}}, "status": map[string]any{"state": "active"}}}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		silenced := func(id string) string {
			s := silences[id]
			if s == nil || s["status"].(map[string]any)["state"] != "active" {
				return `{"state":"active","silencedBy":[]}`
			}
			return `{"state":"suppressed","silencedBy":["` + id + `"]}`
		}
		one := silences[strings.TrimPrefix(r.URL.Path, "/api/v2/silence/")]
		switch {
		case r.URL.Path == "/api/v2/alerts":
			_, _ = fmt.Fprintf(w, `[{"labels":{"alertname":"NodeFilesystemUsage","severity":"critical","node":"gpu-7"},"annotations":{"summary":"The file system / of gpu-7 is 93 %% full.","runbook_url":"https://example.org/runbooks/disk"},"startsAt":%[1]q,"status":%[2]s},
			{"labels":{"alertname":"GpuIdle","severity":"warning","job_name":"resnet-152"},"annotations":{"summary":"<b>8 GPUs</b> of vic/resnet-152 are idle for 4 hours.","runbook_url":"javascript:alert(1)"},"startsAt":%[1]q,"status":%[3]s}]`, since, silenced("5e1b"), silenced("5e1a"))
		case r.URL.Path == "/api/v2/silences" && r.Method == http.MethodPost:
			made := map[string]any{}
			_ = json.NewDecoder(r.Body).Decode(&made)
			made["id"], made["status"] = "5e1b", map[string]any{"state": "active"}
			silences["5e1b"] = made
			_, _ = io.WriteString(w, `{"silenceID":"5e1b"}`)
		case r.URL.Path == "/api/v2/silences":
			_ = json.NewEncoder(w).Encode(slices.Collect(maps.Values(silences)))
		case one == nil:
			http.NotFound(w, r)
		case r.Method == http.MethodDelete:
			one["status"] = map[string]any{"state": "expired"}
		default:
			_ = json.NewEncoder(w).Encode(one)
		}
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

func withAlerts(t *testing.T) func(*servertest.Options) {
	return func(o *servertest.Options) {
		o.Settings = settings.Default()
		o.Settings.Alerts.URL = alertmanager(t)
	}
}

func TestAlertsOfTheCluster(t *testing.T) {
	b := openTab(t)
	w := newWorld(t, withAlerts(t))
	w.Person("root", "administrators")
	b.signIn(w, "/admin/alerts", "root")
	b.has(".alerts", "NodeFilesystemUsage")
	b.has(".alerts", "<b>8 GPUs</b> of vic/resnet-152")
	b.shows("[...document.querySelectorAll('.alerts a')].map(e => e.getAttribute('href')).join() === 'https://example.org/runbooks/disk,/machines?machine=gpu-7'")
	b.press(".segments button", "Critical")
	b.shows("location.search === '?severity=critical' && document.querySelectorAll('.alerts tbody tr').length === 1")

	// A new silence has the labels of its alert as matchers. The dialog shows how many alerts it would silence.
	b.press(".alerts button", "Silence")
	b.shows("[...document.querySelectorAll('dialog .matcher')].map(e => [...e.querySelectorAll('input, select')].map(x => x.value).join('')).join() === 'alertname=NodeFilesystemUsage,node=gpu-7'")
	b.has("dialog [role=status]", "Firing alerts that match now: 1")
	b.fill("dialog .matcher:nth-of-type(2) select", "=~")
	b.fill("dialog .matcher:nth-of-type(2) input:last-of-type", "gpu-[12]")
	b.has("dialog [role=status]", "Firing alerts that match now: 0")
	b.fill("dialog .matcher:nth-of-type(2) input:last-of-type", "gpu-(")
	b.has("dialog [role=status]", "An expression isn't valid.")
	b.fill("dialog [name=reason]", "the disk is replaced")
	b.press("dialog button[type=submit]", "Silence")
	b.has("dialog .problem", "is not a regular expression")
	b.fill("dialog .matcher:nth-of-type(2) input:last-of-type", "gpu-[78]")
	b.fill("dialog [name=for]", "14400")
	b.has("dialog .commands", "paictl alert silence NodeFilesystemUsage --match 'node=~gpu-[78]' --for 14400s --reason 'the disk is replaced'")
	b.press("dialog button[type=submit]", "Silence")
	b.has(".toast", "Silenced. Firing alerts: 1")
	b.has(".silences", "node=~gpu-[78]")
	b.has(".silences", "root")
	b.has(".alerts", "Silenced")
	b.shows("![...document.querySelectorAll('.alerts button')].some(e => e.innerText === 'Silence')")

	// The silence is ended.
	b.run("[...document.querySelectorAll('.silences tr')].find(e => e.innerText.includes('gpu-[78]')).querySelector('button').click()")
	b.has("dialog[open]", "node=~gpu-[78]")
	b.press("dialog[open] button.primary", "End")
	b.has(".toast", "The silence has ended.")
	b.shows("document.querySelectorAll('.silences tbody tr').length === 1")
	b.has(".alerts button", "Silence")
}

// TestPagesAndScreenshotsOfTheAdministration is like TestPagesAndTheirScreenshots, for the pages of the administration.
func TestPagesAndScreenshotsOfTheAdministration(t *testing.T) {
	b := openTab(t)
	w := newWorld(t, withAlerts(t))
	w.administer()
	w.fill()
	w.handle()
	w.request("cordon", "gpu-3", "a fan is loud", 0)
	w.request("drain", "gpu-4", "new memory", 7200)
	for _, name := range []string{"ann", "bob", "vic"} {
		_, err := w.People.Update(t.Context(), name, func(u *v1.UserSpec) error {
			u.DisplayName, u.Email = map[string]string{"ann": "Ann Lee", "bob": "Bob Stone", "vic": "Vic Hall"}[name], name+"@example.org"
			return nil
		})
		require.NoError(t, err)
	}
	b.signIn(w, "/admin", "root")
	const preview = "(e => { e.value = '3'; e.dispatchEvent(new Event('input', {bubbles: true})); setTimeout(() => [...document.querySelectorAll('button')].find(x => x.innerText === 'Preview').click(), 50) })(document.querySelector('.form input[type=number]'))"
	for name, page := range map[string]struct{ path, shows, does string }{
		"admin-people":   {"/admin/people", "document.querySelector('.people')", ""},
		"admin-person":   {"/admin/people/ann", "document.querySelector('.tokens')", ""},
		"admin-add":      {"/admin/people?add=true", "document.querySelector('.form')", ""},
		"admin-groups":   {"/admin/groups", "document.querySelector('.groups')", ""},
		"admin-group":    {"/admin/groups/speech", "document.querySelector('.members')", ""},
		"admin-vcs":      {"/admin/virtual-clusters", "document.querySelector('.vc-table')", ""},
		"admin-services": {"/admin/services?open=grafana", "document.querySelector('.open')", ""},
		"admin-alerts":   {"/admin/alerts", "document.querySelector('.alerts')", ""},
		"admin-silence":  {"/admin/alerts", "document.querySelector('.alerts button')", "document.querySelector('.alerts button').click()"},
		"admin-actions":  {"/admin/actions", "document.querySelector('.requested')", "document.querySelector('.requested button.whole').click()"},
		"admin-machine":  {"/machines?machine=gpu-3", "document.querySelector('.steps')", ""},
		"admin-drain":    {"/machines?machine=gpu-1", "document.querySelector('.requests button')", "[...document.querySelectorAll('.requests button')].find(e => e.innerText.includes('Drain')).click()"},
		"admin-audit":    {"/admin/audit", "document.querySelector('.audit')", "document.querySelector('.audit button.whole').click()"},
	} {
		b.pictures(w, name, page.path, page.shows, page.does)
	}
	b.pictures(w, "admin-vc", "/admin/virtual-clusters/vision", "document.querySelector('.form input[type=number]')", preview, "document.querySelector('.effects')")
}

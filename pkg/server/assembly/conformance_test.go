package assembly_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/job/jobtest"
	fv1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/openpai"
	"github.com/openpai/paictl/pkg/people/rules"
	"github.com/openpai/paictl/pkg/people/token"
	"github.com/openpai/paictl/pkg/server/app"
	"github.com/openpai/paictl/pkg/server/servertest"
	"github.com/openpai/paictl/pkg/server/v3/api"
)

// This test sends the requests that OpenPAI's clients rely on, and checks the responses. A behavior that needs more than one request has a separate
// test below, with its number. The tests of virtual clusters and groups contain the numbers 6 and 21. The test of replicas contains the number 19.
func TestWhatOpenPAIsClientsRelyOn(t *testing.T) {
	h := newHouse(t)
	two := strings.Replace(servertest.JobFile("pair", "speech"), "taskRoles: {Worker_1: ", "taskRoles: {b_2: {instances: 1, dockerImage: i, resourcePerInstance: {cpu: 1, memoryMB: 64, gpu: 1}, commands: [sh]}, A_1: ", 1)
	require.Equal(t, 202, h.as("ann", "POST", "/api/v2/jobs", two).Status)
	runs(t, h, "pair", "b2", "a1")
	for _, c := range []struct {
		number, who, method, path, body, media string
		status                                 int
		has                                    string // in the answer's body; "!" before it: hasn't
	}{
		{"1", "ann", "PUT", "/api/v2/jobs/ann~pair/tag", `{"value":"good"}`, "text/plain;charset=UTF-8", 200, "successfully"},
		{"1", "ann", "PUT", "/api/v2/users/ann/email", `{"email":"ann@example.org"}`, "text/plain;charset=UTF-8", 201, ""},
		{"1", "root", "PUT", "/api/v2/user/ann/virtualcluster", `{"virtualCluster":["speech"]}`, "text/plain;charset=UTF-8", 201, ""},
		{"1", "ann", "PUT", "/api/v2/jobs/ann~pair/executionType", `{"value":"START"}`, "text/plain;charset=UTF-8", 409, "ConflictJobError"},
		{"2", "", "POST", "/api/v2/authn/basic/login", `{"username":"ann","password":"PASSWORD","expiration":"604800"}`, "application/json", 200, `"token":"eyJ`},
		{"2", "", "POST", "/api/v1/token", "username=ann&password=PASSWORD&expiration=4000", "application/x-www-form-urlencoded", 200, `"user":"ann"`},
		{"2", "", "POST", "/api/v2/authn/basic/login", `{"username":"ann","password":"PASSWORD","expiration":604801}`, "application/json", 400, "InvalidParametersError"},
		{"3", "ann", "GET", "/api/v2/jobs?limit=0&withTotalCount=true&state=RUNNING", "", "", 200, `{"totalCount":1,"data":[]}`},
		{"4", "ann", "GET", "/api/v2/jobs?username=ann", "", "", 200, `[{"debugId"`},
		{"5", "ann", "GET", "/api/v2/jobs?order=completionTime,DESClimit=5000&offset=0", "", "", 200, `[{"debugId"`},
		{"5", "ann", "GET", "/api/v2/jobs?order=undefined,ASC", "", "", 200, `[{"debugId"`},
		{"7", "ann", "GET", "/api/v2/jobs/ann~pair/config", "", "", 200, `"name":"pair"`},
		{"8", "ann", "GET", "/api/v2/jobs/ann~none", "", "", 404, "NoJobError"},
		{"8", "ann", "GET", "/api/v1/user/ann/jobs/none", "", "", 404, "NoJobError"},
		{"8", "ann", "GET", "/api/v1/jobs/ann~none", "", "", 404, "NoJobError"},
		{"9", "", "GET", "/api/v2/jobs/protocolversion/config", "", "", 401, "UnauthorizedUserError"},
		{"10", "", "GET", "/view.html", "", "", 404, "NoApiError"},
		{"11", "ann", "DELETE", "/api/v2/jobs/ann~pair/tag", `{"value":"good"}`, "application/json", 200, "successfully"},
		{"11", "root", "DELETE", "/api/v2/users/vera/group", `{"groupname":"vision"}`, "application/json", 201, ""},
		{"12", "ann", "GET", "/api/v2/users/", "", "", 200, `"username":"ann"`},
		{"12", "", "GET", "/api/v1/", "", "", 200, "launcherType"},
		{"12", "ann", "GET", "/REST-server/api/v2/Jobs/", "", "", 200, `[{"debugId"`},
		{"15", "ann", "GET", "/api/v2/jobs/ann~pair", "", "", 200, `"taskRoles":{"b_2":`},
		{"15", "ann", "GET", "/api/v2/jobs/ann~pair/attempts/0/taskRoles/b2/taskIndex/0/attempts", "", "", 200, `"taskRoleName":"b_2"`},
		{"15", "ann", "GET", "/api/v2/jobs/ann~pair/attempts/0/taskRoles/a1/taskIndex/0/attempts/0/logs", "", "", 200, `"locations":[`},
		{"16", "ann", "GET", "/api/v2/jobs/ann~pair", "", "", 200, `"containerLog":"/api/v2/jobs/ann~pair/attempts/0/taskRoles/b_2/taskIndex/0/attempts/0/logs"`},
		{"20", "ann", "POST", "/api/v2/jobs", strings.Replace(servertest.JobFile("minus", "speech"), "instances: 1,", "instances: 1, completion: {minFailedInstances: null, minSucceededInstances: -1},", 1), "text/yaml", 202, ""},
		{"20", "ann", "POST", "/api/v2/jobs", asJSON(servertest.JobFile("in-json", "speech")), "application/json", 202, ""},
		{"24", "ann", "GET", "/api/v2/users/vic", "", "", 200, `"extension":{}`},
	} {
		a := h.Do(c.method, c.path, h.tokens[c.who], strings.ReplaceAll(c.body, "PASSWORD", password(c.media)), "Content-Type", c.media)
		assert.Equal(t, c.status, a.Status, "%s: %s %s: %s", c.number, c.method, c.path, a.Body)
		assert.Contains(t, a.Body, c.has, "%s: %s %s", c.number, c.method, c.path)
	}
}

// password returns a body of a media type with the password of all people.
func password(media string) string {
	if strings.Contains(media, "urlencoded") {
		return strings.ReplaceAll(servertest.Password, " ", "+")
	}
	return servertest.Password
}

// asJSON converts a job file of servertest to JSON, with the keys in the same order.
func asJSON(file string) string {
	r := strings.NewReplacer("{name: i, type: dockerimage, uri: 'busybox:1'}", `{"name":"i","type":"dockerimage","uri":"busybox:1"}`,
		"{Worker_1: {instances: 1, dockerImage: i, resourcePerInstance: {cpu: 1, memoryMB: 64, gpu: 1}, commands: ['echo hello']}}",
		`{"Worker_1":{"instances":1,"dockerImage":"i","resourcePerInstance":{"cpu":1,"memoryMB":64,"gpu":1},"commands":["echo hello"]}}`, "{virtualCluster: speech}", `{"virtualCluster":"speech"}`)
	var fields []string
	for line := range strings.Lines(r.Replace(file)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		if !strings.ContainsAny(value[:1], `{["0123456789`) {
			value = `"` + value + `"`
		}
		fields = append(fields, `"`+key+`":`+value)
	}
	return "{" + strings.Join(fields, ",") + "}"
}

// runs gives a job of ann running tasks, one task for each role, as the controller does.
func runs(t *testing.T, h *house, name string, objects ...string) {
	t.Helper()
	now, state := metav1.Now(), fv1.AttemptRunning
	var all []*fv1.TaskRoleStatus
	for _, object := range objects {
		pod, uid, node, ip := fv1.PodName(fv1.ObjectName("ann", name), object, 0), "uid-of-"+object, "gpu-1", "10.0.0.7"
		all = append(all, &fv1.TaskRoleStatus{Name: object, Counts: fv1.TaskCounts{Total: 1, Running: 1}, TaskStatuses: []*fv1.TaskStatus{{
			StartTime: now, RunTime: &now, State: state, TransitionTime: now, AttemptStatus: fv1.TaskAttemptStatus{StartTime: now, RunTime: &now, PodName: pod, PodUID: &uid, PodNodeName: &node, PodIP: &ip}}}})
	}
	jobtest.SetStatus(t, h.cluster, fv1.ObjectName("ann", name), &fv1.FrameworkStatus{StartTime: now, RunTime: &now, State: state, TransitionTime: now,
		AttemptStatus: fv1.FrameworkAttemptStatus{StartTime: now, RunTime: &now, ConfigMapName: "none", TaskRoleStatuses: all}})
	h.Eventually("it runs", func() bool {
		return strings.Contains(h.as("ann", "GET", "/api/v2/jobs?state=RUNNING", "").Body, `"`+name+`"`)
	})
}

func TestConformance13BasicWithAnApplicationTokenIsAsGoodAsBearer(t *testing.T) {
	h := newHouse(t)
	require.Equal(t, 202, h.as("ann", "POST", "/api/v2/jobs", loose("basic")).Status)
	stopped(t, h, "basic")
	ann, err := h.People.Person("ann")
	require.NoError(t, err)
	made, err := h.Tokens.Application(t.Context(), ann, token.New{Scopes: []rules.Scope{rules.ScopeRead}})
	require.NoError(t, err)
	read := made.Token.Reveal()
	basic := func(user, word string) string { return "Basic " + base64of(user+":"+word) }
	template := h.save(t, "ann", "train", nil)
	for _, r := range specification(t) {
		if r.method != "GET" || strings.HasSuffix(r.path, "/watch") {
			continue
		}
		path := strings.NewReplacer("JOB", "ann~basic", "PLACE", "ann/basic", "{token}", "none", "{attempt}", "7", "{taskAttempt}", "0", "{log}", "all", "{link}", "none", "{$}", "", "{service}", "prometheus",
			"{role}", "Worker_1", "{index}", "0", "{user}", "ann", "{group}", "speech", "{template}", template, "{path...}", "acls/admin", "{vc}", "speech", "{sha256}", strings.Repeat("ab", 32)).Replace(r.path)
		if other, ok := strings.CutPrefix(r.body, "as "); ok {
			path = other
		}
		a := h.Do("GET", path, "", "", "Authorization", basic("ann", read))
		assert.Equal(t, r.want[5], a.Status, "13: %s: %s", path, a.Body)
	}
	for name, header := range map[string]string{"another person's": basic("vic", read), "a password": basic("ann", servertest.Password), "a browser's token": basic("ann", h.tokens["ann"]), "none": "Basic "} {
		assert.Equal(t, 401, h.Do("GET", "/api/v2/jobs", "", "", "Authorization", header).Status, "13: %s", name)
	}
}

func TestConformance14And23TokensAreReadAndListed(t *testing.T) {
	h := newHouse(t)
	h.person(t, "new", "speech")
	parts := strings.Split(h.SignIn("new"), ".")
	require.Len(t, parts, 3)
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	require.NoError(t, err)
	claims := map[string]any{}
	require.NoError(t, json.Unmarshal(payload, &claims))
	assert.Equal(t, "new", claims["username"], "14")
	assert.Equal(t, false, claims["application"], "14")
	assert.NotEmpty(t, claims["iat"], "14")
	tokens, list := h.as("new", "GET", "/api/v2/tokens", "").JSON()["tokens"].([]any)
	assert.True(t, list, "23")
	assert.NotEmpty(t, tokens, "23")
}

func TestConformance17ALinkToALogEnds(t *testing.T) {
	h := newHouse(t)
	require.Equal(t, 202, h.Submit(h.tokens["ann"], "linked", "speech").Status)
	runs(t, h, "linked", "worker1")
	v, err := h.Tokens.Verify(t.Context(), h.tokens["ann"])
	require.NoError(t, err)
	link := func(l app.Log, life time.Duration) string {
		text, err := h.Tokens.Link(t.Context(), v.Claims, token.UseLog, l, life)
		require.NoError(t, err)
		return "/rest-server/api/v2/joblogs/" + text.Reveal()
	}
	uid := string(framework(t, h.cluster, "ann", "linked").UID)
	here := app.Log{User: "ann", Name: "linked", UID: uid, Role: "worker1"}
	for name, c := range map[string]struct {
		path string
		want int
		code string
	}{
		"valid; the task's pod is gone":  {link(here, time.Minute), 404, "NoTaskLogError"},
		"over":                           {link(here, -time.Second), 403, "ForbiddenUserError"},
		"of a job that had the name":     {link(app.Log{User: "ann", Name: "linked", UID: "another", Role: "worker1"}, time.Minute), 404, "NoJobError"},
		"a token is no link":             {"/api/v2/joblogs/" + h.tokens["ann"], 403, "ForbiddenUserError"},
		"for another's job":              {link(app.Log{User: "vic", Name: "linked", UID: uid, Role: "worker1"}, time.Minute), 404, "NoJobError"},
		"cut":                            {strings.TrimSuffix(link(here, time.Minute), "A")[:200], 403, "ForbiddenUserError"},
		"a link is no token, and a path": {"/api/v2/joblogs/none", 403, "ForbiddenUserError"},
	} {
		a := h.Do("GET", c.path, "", "")
		assert.Equal(t, c.want, a.Status, "17: %s: %s", name, a.Body)
		assert.Equal(t, c.code, a.Code(), "17: %s", name)
	}
	text := strings.TrimPrefix(link(here, time.Minute), "/rest-server/api/v2/joblogs/")
	assert.Equal(t, 401, h.Do("GET", "/api/v2/jobs", text, "").Status, "17: a link is no token")
	assert.NotContains(t, h.Printed.String(), text, "17: the log of the server has no link")
}

func TestConformance18PagesOfOtherOriginsMaySendTokens(t *testing.T) {
	h := newHouse(t)
	for _, path := range []string{"/api/v2/jobs", "/rest-server/api/v2/virtual-clusters", "/api/v2/joblogs/none"} {
		a := h.Do("OPTIONS", path, "", "", "Origin", "https://portal.example.org", "Access-Control-Request-Method", "GET", "Access-Control-Request-Headers", "authorization")
		assert.Equal(t, http.StatusNoContent, a.Status, "18: %s", path)
		assert.Equal(t, "*", a.Header.Get("Access-Control-Allow-Origin"), "18: %s", path)
		assert.Equal(t, "authorization", a.Header.Get("Access-Control-Allow-Headers"), "18: %s", path)
	}
}

func TestConformance22PeopleWhoseSecretsHadHexNamesKeepTheirPasswords(t *testing.T) {
	h := newHouse(t)
	secrets := map[string]corev1.Secret{
		// This is the password "alice's old password" as Node hashes it, with PBKDF2 and 10,000 rounds of SHA-512. The salt is the MD5 of the name.
		openpai.UserNamespace: {ObjectMeta: metav1.ObjectMeta{Name: "616c696365"}, Data: map[string][]byte{
			"username": []byte("alice"), "email": []byte("alice@lab.example"), "grouplist": []byte(`["vision"]`), "extension": []byte(`{}`),
			"password": []byte("8daf9e289f39298030c3cd3aa93e0753c283aec5ee536087938de6af47ac5c65e14afdf8d988caac0a235dbc46ba5e331360bea32cccf7cf7daf6a73911a8cf1"),
		}},
		openpai.GroupNamespace: {ObjectMeta: metav1.ObjectMeta{Name: "766973696f6e"}, Data: map[string][]byte{
			"groupname": []byte("vision"), "description": nil, "externalName": nil, "extension": []byte(`{"acls":{"admin":false,"virtualClusters":["vision"]}}`),
		}},
	}
	for namespace, s := range secrets {
		_, err := h.cluster.Client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
		require.NoError(t, err)
		_, err = h.cluster.Client.CoreV1().Secrets(namespace).Create(t.Context(), &s, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	src, err := openpai.Read(t.Context(), h.cluster.Client, openpai.UserNamespace, openpai.GroupNamespace)
	require.NoError(t, err)
	todo, err := openpai.Plan(t.Context(), src, h.People, openpai.Options{Passwords: true})
	require.NoError(t, err)
	require.NoError(t, openpai.Apply(t.Context(), h.People, todo, func(*openpai.Step) {}))
	login := func(password string) *servertest.Answer {
		return h.Do("POST", "/api/v2/authn/basic/login", "", `{"username":"alice","password":"`+password+`"}`)
	}
	hash := func() string {
		p, err := h.People.Person("alice")
		require.NoError(t, err)
		stored, err := h.People.Password(t.Context(), p)
		require.NoError(t, err)
		return stored.Hash
	}
	assert.Equal(t, 400, login("alice's new password").Status, "22")
	assert.Contains(t, hash(), "$pbkdf2-sha512$", "22: a wrong one changes nothing")
	a := login("alice's old password")
	require.Equal(t, 200, a.Status, "22: %s", a.Body)
	h.tokens["alice"] = a.JSON()["token"].(string)
	assert.Contains(t, h.as("alice", "GET", "/api/v2/users/alice", "").Body, `"grouplist":["vision"]`, "22")
	h.Eventually("22: it is hashed again", func() bool { return strings.HasPrefix(hash(), "$argon2id$") })
	assert.Equal(t, 200, login("alice's old password").Status, "22: it is still the password")
	assert.Equal(t, 400, login("alice's new password").Status, "22")
	assert.NotContains(t, h.Printed.String(), "old password")
}

// OpenPAI sent a token to any address. Here, a page gets a token only if the settings list the page. A program on the browser's machine gets a code
// instead, because other people on that machine could use a token. The code is useless without the program's verifier.
func TestConformance25TokensGoToNoForeignHost(t *testing.T) {
	l := openLab(t, nil)
	b := l.browser()
	for _, version := range []string{"v1", "v2"} {
		for _, to := range []string{"https://evil.example.org/callback", "https://localhost.evil.example.org:8123/callback", "http://localhost:8123/callback"} {
			a := l.Do("GET", "/api/"+version+"/authn/oidc/login?redirect_uri="+url.QueryEscape(to), "", "")
			assert.Equal(t, 400, a.Status, "25: %s", to)
			assert.Empty(t, a.Header.Get("Location"), "25: %s", to)
		}
	}
	verifier := strings.Repeat("v", 43)
	sum := sha256.Sum256([]byte(verifier))
	for _, port := range []string{"1024", "8123", "65535"} {
		at := "http://127.0.0.1:" + port + "/callback"
		goal, err := json.Marshal(api.Goal{Program: &api.Program{Redirect: at, State: "s", Challenge: base64.RawURLEncoding.EncodeToString(sum[:])}})
		require.NoError(t, err)
		to, _ := b.redirect("kim", string(goal))
		require.True(t, strings.HasPrefix(to, at+"?"), "25: %s", to)
		assert.NotContains(t, to, "token=", "25")
		code := mustParse(t, to).Query().Get("code")
		a, tokens := l.token(url.Values{"grant_type": {api.GrantCode}, "code": {code}, "code_verifier": {verifier}, "redirect_uri": {at}})
		require.Equal(t, 200, a.Status, "25: %s", a.Body)
		assert.Equal(t, "kim", l.whoami(tokens.AccessToken).Name, "25")
	}
}

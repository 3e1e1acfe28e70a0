package assembly_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/openpai/paictl/pkg/kube/kubetest"
	"github.com/openpai/paictl/pkg/people/template"
	v1 "github.com/openpai/paictl/pkg/people/v1"
	"github.com/openpai/paictl/pkg/server/servertest"
	"github.com/openpai/paictl/pkg/server/v3/api"
)

// save saves a template of a person, and returns its id. change may be nil.
func (h *house) save(t *testing.T, who, name string, change func(*v1.TemplateSpec)) string {
	t.Helper()
	spec := v1.TemplateSpec{Name: name, Job: loose("train")}
	if change != nil {
		change(&spec)
	}
	body, err := json.Marshal(spec)
	require.NoError(t, err)
	a := h.as(who, "POST", "/api/v3/templates", string(body))
	require.Equal(t, 201, a.Status, a.Body)
	made := api.Template{}
	a.Into(&made)
	assert.Equal(t, who, made.Author)
	return made.ID
}

func (h *house) templates(t *testing.T, who, query string) []string {
	t.Helper()
	items := []struct{ Author, Name string }{}
	h.as(who, "GET", "/marketplace/api/items?"+query, "").Into(&items)
	names, again := []string{}, []string{}
	for _, i := range items {
		names = append(names, i.Author+"/"+i.Name)
	}
	if query == "" {
		list := api.Templates{}
		h.as(who, "GET", "/api/v3/templates", "").Into(&list)
		for _, i := range list.Items {
			again = append(again, i.Author+"/"+i.Name)
			assert.Empty(t, i.Job, "lists are short")
		}
		assert.Equal(t, names, again)
	}
	return names
}

func TestTemplatesAreSeenByWhomTheyAreSharedWith(t *testing.T) {
	h := newHouse(t)
	own := h.save(t, "ann", "own", nil)
	group := h.save(t, "ann", "group", func(s *v1.TemplateSpec) { s.Groups = []string{"speech"} })
	public := h.save(t, "ann", "public", func(s *v1.TemplateSpec) { s.Public = true })
	for who, want := range map[string][]string{
		"ann": {"ann/group", "ann/own", "ann/public"}, "abe": {"ann/group", "ann/public"}, "vic": {"ann/public"}, "root": {"ann/group", "ann/own", "ann/public"},
	} {
		assert.Equal(t, want, h.templates(t, who, ""), who)
		for id, name := range map[string]string{own: "ann/own", group: "ann/group", public: "ann/public"} {
			status, change := 404, 404
			for _, seen := range want {
				if seen == name {
					status, change = 200, 403
				}
			}
			if who == "ann" || who == "root" {
				change = 200
			}
			for _, path := range []string{"/api/v3/templates/", "/api/v2/templates/", "/marketplace/api/items/", "/rest-server/api/v2/templates/"} {
				a := h.as(who, "GET", path+id, "")
				assert.Equal(t, status, a.Status, "%s of %s", path, name)
				if status == 404 {
					assert.Equal(t, h.as(who, "GET", path+"00000000-0000-0000-0000-000000000000", "").JSON()["message"], a.JSON()["message"], "as one that isn't there")
				}
			}
			assert.Equal(t, change, h.as(who, "PUT", "/marketplace/api/items/"+id, `{"summary":"`+who+`"}`).Status, "%s changes %s", who, name)
			if change != 200 {
				assert.Equal(t, change, h.as(who, "DELETE", "/api/v3/templates/"+id, "").Status)
			}
			assert.Equal(t, status, h.as(who, "PUT", "/api/v3/templates/"+id+"/star", "").Status)
		}
	}
	// People can read the audit records of their rejected requests. These records must not contain the names of templates.
	refusals := 0
	for line := range strings.Lines(h.Printed.String()) {
		if strings.Contains(line, `"actor":"vic"`) && strings.Contains(line, `"kind":"template"`) {
			refusals++
			assert.NotContains(t, line, `"own"`)
			assert.NotContains(t, line, `"group"`)
		}
	}
	assert.NotZero(t, refusals)
	// The template is no longer visible after the grant was revoked.
	_, err := h.People.Update(t.Context(), "abe", func(u *v1.UserSpec) error { u.Groups = []string{"vision"}; return nil })
	require.NoError(t, err)
	assert.Equal(t, []string{"ann/public"}, h.templates(t, "abe", ""))
	assert.Equal(t, 404, h.as("abe", "GET", "/api/v3/templates/"+group, "").Status)
}

// The server supports the requests of the marketplace's pages and of OpenPAI's Submit page.
func TestItemsAreAsTheMarketplaceReadsThem(t *testing.T) {
	h := newHouse(t)
	protocol := loose("train") + "secrets: {password: TOP-SECRET}\n"
	sent := map[string]any{"name": "BERT (large)", "author": "ann", "type": "template", "source": "marketplace", "isPublic": false, "isPrivate": true, "groupList": []string{}, "dataType": "none", "dataUrl": "", "useBlob": false,
		"categories": []string{"nlp"}, "tags": []string{"bert", "pytorch"}, "summary": "Trains BERT", "description": "# BERT\n<script>alert(1)</script>", "protocol": protocol, "useNumber": 99, "starNumber": 99, "status": "pending", "id": "x"}
	body, err := json.Marshal(sent)
	require.NoError(t, err)
	a := h.as("ann", "POST", "/marketplace/api/items", string(body))
	require.Equal(t, 201, a.Status, a.Body)
	id := a.JSON()["id"].(string)
	assert.Len(t, a.JSON(), 1)

	items := []map[string]any{}
	h.as("ann", "GET", "/marketplace/api/items?author=ann&isPrivate=true", "").Into(&items)
	require.Len(t, items, 1)
	i := items[0]
	assert.Contains(t, i["protocol"], "name: train")
	assert.NotContains(t, i["protocol"], "TOP-SECRET")
	assert.NotEmpty(t, i["createdAt"])
	assert.NotEmpty(t, i["updatedAt"])
	for _, key := range []string{"protocol", "createdAt", "updatedAt"} {
		delete(i, key)
	}
	assert.Equal(t, map[string]any{"id": id, "name": "BERT (large)", "author": "ann", "type": "template", "source": "marketplace", "isPublic": false, "isPrivate": true, "groupList": []any{}, "dataType": "none", "dataUrl": "", "useBlob": false,
		"categories": []any{"nlp"}, "tags": []any{"bert", "pytorch"}, "summary": "Trains BERT", "description": "# BERT\n<script>alert(1)</script>", "useNumber": 0.0, "starNumber": 0.0, "status": "approved",
		"ItemTags": []any{map[string]any{"id": "bert", "name": "bert"}, map[string]any{"id": "pytorch", "name": "pytorch"}}, "ItemCategories": []any{map[string]any{"id": "nlp", "name": "nlp"}}}, i)

	// A page sends all fields that it has read.
	whole := h.as("ann", "GET", "/marketplace/api/items/"+id, "")
	assert.Contains(t, whole.Header.Get("Content-Type"), "application/json", "no browser treats a description as a page")
	again := whole.JSON()
	again["isPrivate"], again["isPublic"], again["summary"] = false, true, "for all"
	body, err = json.Marshal(again)
	require.NoError(t, err)
	a = h.as("ann", "PUT", "/marketplace/api/items/"+id, string(body))
	assert.Equal(t, 200, a.Status, a.Body)
	assert.Equal(t, "updated", a.Body)
	got := h.as("vic", "GET", "/marketplace/api/items/"+id, "").JSON()
	assert.Equal(t, true, got["isPublic"])
	assert.Equal(t, false, got["isPrivate"])
	assert.Equal(t, "for all", got["summary"])
	assert.Equal(t, again["protocol"], got["protocol"])
	a = h.as("root", "PUT", "/marketplace/api/items/"+id, string(body))
	assert.Equal(t, 409, a.Status, "what it began with is another by now")
	assert.Equal(t, "ConflictError", a.Code())
	assert.NotEmpty(t, a.JSON()["remedy"])
	assert.Equal(t, 400, h.as("ann", "PUT", "/marketplace/api/items/"+id, `{"updatedAt":"yesterday"}`).Status)
	fresh, err := json.Marshal(map[string]any{"updatedAt": got["updatedAt"], "summary": "for all"})
	require.NoError(t, err)
	assert.Equal(t, 200, h.as("ann", "PUT", "/marketplace/api/items/"+id, string(fresh)).Status)
	assert.Equal(t, 200, h.as("ann", "PUT", "/marketplace/api/items/"+id, `{"updatedAt":null,"summary":"for all"}`).Status)

	h.save(t, "vic", "other", func(s *v1.TemplateSpec) { s.Type, s.Public, s.Tags = "data", true, []string{"bert"} })
	for query, want := range map[string][]string{
		"source=marketplace&isPublic=true": {"ann/BERT (large)", "vic/other"}, "isPublic=false": {}, "isPrivate=true": {}, "source=pai": {}, "type=data": {"vic/other"}, "author=vic": {"vic/other"},
		"name=other": {"vic/other"}, "keyword=BERT": {"ann/BERT (large)"}, "keyword=for+all": {"ann/BERT (large)"}, "tag=bert": {"ann/BERT (large)", "vic/other"}, "tag=bert,pytorch": {"ann/BERT (large)"},
		"category=nlp": {"ann/BERT (large)"}, "category=nlp,x": {}, "author=none": {},
	} {
		assert.Equal(t, want, h.templates(t, "abe", query), query)
	}
	tags, categories := []map[string]string{}, []map[string]string{}
	h.as("abe", "GET", "/marketplace/api/tags", "").Into(&tags)
	assert.Equal(t, []map[string]string{{"id": "bert", "name": "bert"}, {"id": "pytorch", "name": "pytorch"}}, tags)
	h.as("abe", "GET", "/marketplace/api/categories", "").Into(&categories)
	assert.Equal(t, []map[string]string{{"id": "nlp", "name": "nlp"}, {"id": "official example", "name": "official example"}}, categories)

	a = h.as("ann", "DELETE", "/marketplace/api/items/"+id, "")
	assert.Equal(t, "deleted", a.Body)
	assert.Equal(t, 404, h.as("ann", "GET", "/marketplace/api/items/"+id, "").Status)
	assert.NotContains(t, h.Printed.String(), "TOP-SECRET")
	assert.NotContains(t, h.Printed.String(), "<script>")
}

func TestTemplatesCantBeForged(t *testing.T) {
	h := newHouse(t)
	ask := h.asker(t)
	id := h.save(t, "ann", "own", nil)
	file, err := json.Marshal(loose("x"))
	require.NoError(t, err)
	post := func(who string, status int, code, more string) {
		t.Helper()
		ask(who, "POST", "/templates", fmt.Sprintf(`{"name":"new","protocol":%s%s}`, file, more), status, code)
	}
	post("vic", 403, "ForbiddenUserError", `,"author":"ann"`)
	post("root", 403, "ForbiddenUserError", `,"author":"ann"`)
	post("vic", 403, "ForbiddenUserError", `,"groupList":["speech"]`)
	post("vic", 404, "NoGroupError", `,"groupList":["none"]`)
	post("vic", 403, "ForbiddenUserError", `,"categories":["official example"]`)
	post("vic", 400, "InvalidParametersError", `,"isPublic":true,"isPrivate":true`)
	post("vic", 400, "InvalidParametersError", `,"type":"x"`)
	post("vic", 400, "InvalidParametersError", `,"name":"../../etc"`)
	post("vic", 400, "InvalidParametersError", `,"admin":true`)
	ask("vic", "POST", "/templates", `{"name":"new","protocol":"a: ["}`, 400, "InvalidProtocolError")
	ask("vic", "POST", "/templates", `{"name":"new","protocol":""}`, 400, "InvalidProtocolError")
	a := h.as("vic", "POST", "/api/v2/templates", `{"name":"`+strings.Repeat("x", 2<<20)+`"}`)
	assert.Equal(t, 413, a.Status)

	ask("ann", "PUT", "/templates/"+id, `{"author":"vic"}`, 400, "InvalidParametersError")
	ask("ann", "PUT", "/templates/"+id, `{"categories":["official example"]}`, 403, "ForbiddenUserError")
	for _, path := range []string{"..%2f" + id, id + "%00", "%2e%2e/users", url.PathEscape("t-*"), strings.Repeat("a", 900)} {
		for _, method := range []string{"GET", "PUT", "DELETE"} {
			status := h.as("vic", method, "/marketplace/api/items/"+path, "{}").Status
			assert.Contains(t, []int{400, 404}, status, "%s %s", method, path)
		}
	}

	// Only administrators may change a template that is an official example.
	require.Equal(t, 200, h.as("root", "PUT", "/api/v2/templates/"+id, `{"categories":["official example"],"isPublic":true}`).Status)
	ask("ann", "PUT", "/templates/"+id, `{"summary":"mine"}`, 403, "ForbiddenUserError")
	ask("ann", "DELETE", "/templates/"+id, "", 403, "ForbiddenUserError")
	assert.Equal(t, []string{"ann/own"}, h.templates(t, "ann", ""), "nothing else was made")
	got := h.as("vic", "GET", "/api/v2/templates/"+id, "").JSON()
	assert.Equal(t, "ann", got["author"])
	assert.Empty(t, got["summary"])
}

func TestATemplateIsChangedAsItWasRead(t *testing.T) {
	h := newHouse(t)
	id := h.save(t, "ann", "train", func(s *v1.TemplateSpec) { s.Public = true })
	was := api.Template{}
	h.as("ann", "GET", "/api/v3/templates/"+id, "").Into(&was)
	put := func(who, summary string, version int64) int {
		change := api.TemplateChange{Version: version, Spec: was.TemplateSpec}
		change.Spec.Summary = summary
		body, err := json.Marshal(change)
		require.NoError(t, err)
		return h.as(who, "PUT", "/api/v3/templates/"+id, string(body)).Status
	}
	require.Equal(t, 200, h.as("vic", "PUT", "/api/v3/templates/"+id+"/star", "").Status)
	require.Equal(t, 200, h.as("abe", "PUT", "/api/v3/templates/"+id+"/star", "").Status)
	require.Equal(t, 200, h.as("abe", "PUT", "/api/v3/templates/"+id+"/star", "").Status, "twice is once")
	require.Equal(t, 200, h.as("vic", "POST", "/api/v3/templates/"+id+"/use", "").Status)
	require.Equal(t, 200, h.as("vic", "POST", "/api/v3/templates/"+id+"/use", "").Status, "a second use within the hour isn't counted")
	assert.Equal(t, 200, put("root", "the administrator's", was.Version))
	assert.Equal(t, 409, put("ann", "too late", was.Version))
	got := api.Template{}
	h.as("vic", "GET", "/api/v3/templates/"+id, "").Into(&got)
	assert.Equal(t, "the administrator's", got.Summary)
	assert.Equal(t, 2, got.Stars)
	assert.True(t, got.Starred)
	assert.EqualValues(t, 1, got.Uses)
	h.as("vic", "DELETE", "/api/v3/templates/"+id+"/star", "").Into(&got)
	assert.Equal(t, 1, got.Stars)
	assert.False(t, got.Starred)
	item := h.as("vic", "GET", "/marketplace/api/items/"+id, "").JSON()
	assert.EqualValues(t, 1, item["useNumber"])
	assert.EqualValues(t, 1, item["starNumber"])
}

func TestWhoChangesTemplatesAgainAndAgainWaits(t *testing.T) {
	h := newHouse(t)
	id := h.save(t, "ann", "train", func(s *v1.TemplateSpec) { s.Public = true })
	for _, method := range []string{"PUT", "DELETE"} {
		for range 30 {
			require.Equal(t, 200, h.as("vic", method, "/api/v3/templates/"+id+"/star", "").Status)
		}
	}
	for path, method := range map[string]string{"/api/v3/templates": "POST", "/api/v2/templates": "POST", "/api/v2/templates/" + id: "PUT", "/api/v3/templates/" + id: "PUT", "/api/v3/templates/" + id + "/star": "DELETE"} {
		assert.Equal(t, 429, h.as("vic", method, path, "{}").Status, "%s %s", method, path)
	}
	assert.Equal(t, 200, h.as("vic", "GET", "/api/v3/templates/"+id, "").Status)
	assert.Equal(t, 200, h.as("ann", "PUT", "/api/v3/templates/"+id+"/star", "").Status, "a limit is a person's own")
}

func TestWhoIsRemovedLeavesNoTemplates(t *testing.T) {
	h := newHouse(t)
	h.person(t, "leo", "speech")
	h.save(t, "leo", "shared", func(s *v1.TemplateSpec) { s.Public = true })
	late := h.save(t, "ann", "late", func(s *v1.TemplateSpec) { s.Public = true })
	assert.Equal(t, 200, h.as("root", "DELETE", "/api/v3/users/leo", "").Status)
	assert.Equal(t, []string{"ann/late"}, h.templates(t, "vic", ""))

	// If a template is added while its author is being removed, only administrators can read and remove the template.
	store, err := template.Open(h.cluster.Config, template.Options{})
	require.NoError(t, err)
	require.NoError(t, store.Load(t.Context()))
	_, err = store.Add(t.Context(), v1.TemplateSpec{Name: "orphan", Author: "leo", Public: true, Groups: nil, Job: loose("x")})
	require.NoError(t, err)
	h.Eventually("the watch has told of it", func() bool { return len(h.templates(t, "root", "isPublic=true")) == 2 })
	assert.Equal(t, []string{"ann/late"}, h.templates(t, "vic", ""))
	assert.Equal(t, 200, h.as("ann", "DELETE", "/api/v3/templates/"+late, "").Status)
}

func TestTheCatalogueIsForEveryoneAndChangedByNobody(t *testing.T) {
	c := kubetest.Start(t)
	servertest.Prepare(t, c)
	builtIn, err := template.BuiltIn()
	require.NoError(t, err)
	h := houseOn(t, c, servertest.Options{Settings: withDoor(), BuiltIn: builtIn})
	mine := h.save(t, "vic", "hello", nil)
	names := h.templates(t, "vic", "")
	require.Len(t, names, 1+len(builtIn))
	assert.Equal(t, []string{"vic/hello", "@catalogue/hello"}, names[:2], "one's own first")
	list := api.Templates{}
	h.as("ann", "GET", "/api/v3/templates?author=@catalogue&name=hello", "").Into(&list)
	require.Len(t, list.Items, 1)
	assert.True(t, list.Items[0].BuiltIn)
	one := "/api/v3/templates/" + list.Items[0].ID

	whole := api.Template{}
	h.as("ann", "GET", one, "").Into(&whole)
	assert.Contains(t, whole.Job, "name: hello")
	assert.NotContains(t, h.as("ann", "GET", one, "").Body, `"updated"`)
	assert.Equal(t, 401, h.Do("GET", one, "", "").Status)
	put, err := json.Marshal(api.TemplateChange{Version: 1, Spec: whole.TemplateSpec})
	require.NoError(t, err)
	for _, who := range []string{"ann", "root"} {
		for method, body := range map[string]string{"PUT": string(put), "DELETE": ""} {
			a := h.as(who, method, one, body)
			assert.Equal(t, 403, a.Status, "%s %s", who, method)
			assert.Contains(t, a.Body, "the template is built in: copy it, and change the copy")
		}
		forged, err := json.Marshal(v1.TemplateSpec{Name: "mine", Author: v1.AuthorBuiltIn, Job: loose("x")})
		require.NoError(t, err)
		assert.Equal(t, 403, h.as(who, "POST", "/api/v3/templates", string(forged)).Status)
	}
	assert.Equal(t, 403, h.as("root", "PUT", "/marketplace/api/items/"+list.Items[0].ID, `{"summary":"x"}`).Status)

	h.as("ann", "PUT", one+"/star", "").Into(&whole)
	assert.True(t, whole.Starred)
	assert.Equal(t, 1, whole.Stars)
	assert.Equal(t, 200, h.as("abe", "POST", one+"/use", "").Status)
	h.as("vic", "GET", one, "").Into(&whole)
	assert.False(t, whole.Starred)
	assert.Equal(t, 1, whole.Stars)
	assert.EqualValues(t, 1, whole.Uses)
	assert.Contains(t, whole.Job, "name: hello")
	assert.Len(t, h.templates(t, "vic", ""), 1+len(builtIn), "the object with the stars is no template")
	assert.Equal(t, []string{"vic/hello"}, h.templates(t, "vic", "author=vic"))
	assert.Equal(t, 200, h.as("vic", "DELETE", "/api/v3/templates/"+mine, "").Status)
}

// Operators may also change the objects of the cluster directly.
func TestTwoReplicasKnowTheSameTemplates(t *testing.T) {
	h := newHouse(t)
	other := servertest.Start(t, h.cluster, servertest.Options{})
	ask := func(who, method, path, body string) int { return other.Do(method, path, h.tokens[who], body).Status }
	id := h.save(t, "ann", "train", nil)
	h.Eventually("the other replica knows it", func() bool { return ask("ann", "GET", "/api/v3/templates/"+id, "") == 200 })
	again, err := json.Marshal(v1.TemplateSpec{Name: "train", Job: loose("x")})
	require.NoError(t, err)
	assert.Equal(t, 409, ask("ann", "POST", "/api/v3/templates", string(again)))
	assert.Equal(t, 200, ask("ann", "PUT", "/marketplace/api/items/"+id, `{"isPublic":true}`))
	h.Eventually("this replica knows of the change", func() bool { return h.as("vic", "GET", "/api/v3/templates/"+id, "").Status == 200 })
	client, err := dynamic.NewForConfig(h.cluster.Config)
	require.NoError(t, err)
	list, err := client.Resource(v1.Templates).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	_, err = client.Resource(v1.Templates).Patch(t.Context(), list.Items[0].GetName(), types.MergePatchType, []byte(`{"spec":{"public":false}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	h.Eventually("an operator took it away", func() bool { return h.as("vic", "GET", "/api/v3/templates/"+id, "").Status == 404 })
}

func TestWithoutTheApiServerNothingIsSaidOfTemplates(t *testing.T) {
	base := newHouse(t)
	w := cut(t, base.cluster.Config)
	h := houseOn(t, base.cluster, servertest.Options{API: w.apply})
	id := h.save(t, "ann", "train", nil)
	w.take()
	h.Eventually("it is noticed", func() bool { return h.as("ann", "GET", "/api/v3/templates/"+id, "").Status == 503 })
	w.give()
	h.Eventually("it is back", func() bool { return h.as("ann", "GET", "/api/v3/templates/"+id, "").Status == 200 })
}

package openapi

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/openpai/paictl/pkg/server"
)

// intro is the text before the lists.
const intro = `# The REST API

Use this page to look up an operation of the platform's server (the service ` + "`rest-server`" + `), or to write a client of it.

The server describes itself at ` + "`" + Path + "`" + ` (OpenAPI 3.1), with all fields of requests and answers. A test holds every answer to that description.
This page is made from it.

- ` + "`/api/v3`" + ` is paictl's own API, with the types that ` + "`-o json`" + ` prints. ` + "`/api/v2`" + ` and ` + "`/api/v1`" + ` are OpenPAI's; ` + "`/rest-server`" + ` may stand before any path.
- Send ` + "`Authorization: Bearer TOKEN`" + `: a session's token, or one of ` + "`paictl token create`" + `.
- An error is ` + "`{\"code\", \"message\", \"remedy\"?, \"findings\"?, \"request\"?}`" + `. The code is one that the operation names, or one of those that all have: %s.
  With 429 and 503, ` + "`Retry-After`" + ` says when to ask again.
- ` + "`Idempotency-Key`" + ` (8 to 64 letters, digits, ` + "`.`, `_`, `-`" + `) at a submission: when it is sent again within two hours, it gets the answer of the first time. Another submission with that key gets 422.

## Watch jobs

` + "`GET /api/v3/jobs/watch`" + ` answers with server-sent events: first all that the list has, then what changes. It has the filters of the list.

| event | data | meaning |
|---|---|---|
| ` + "`snapshot`" + ` | ` + "`{\"why\"}`" + ` | What follows until ` + "`ready`" + ` is the whole list; forget what you know, and what came of a list whose ` + "`ready`" + ` you didn't get. ` + "`new`" + `: the watch begins. ` + "`expired`" + `: what changed since your id isn't known. ` + "`grants`" + `: you see other jobs than before. |
| ` + "`job`" + ` | a row of the list | A job that is new, or has changed. A later one with the same ` + "`uid`" + ` stands for it. |
| ` + "`gone`" + ` | ` + "`{\"uid\", \"user\", \"name\"}`" + ` | The list doesn't have that job; you may not have heard of it. |
| ` + "`ready`" + ` | ` + "`{\"next\"?, \"note\"?}`" + ` | The list is complete. |
| ` + "`problem`" + `, ` + "`back`" + ` | an error, ` + "`{}`" + ` | The server hears of no changes now; it hears of them again. |
| ` + "`end`" + ` | an error | The last event. Come back after ` + "`retry`" + ` milliseconds, unless your token has ended. |

Send the last id that you have got as ` + "`Last-Event-ID`" + `, to any server of the cluster: you get what changed since. Something comes at least every 20 seconds. A person may have 100 streams open, a token 20.

`

// Page returns the text of docs/rest-api.md.
func Page(version string, routes []server.Route) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, intro, "`"+strings.Join(Always(), "`, `")+"`")
	data, err := Document(version, routes)
	if err != nil {
		return "", err
	}
	d := document{}
	if err := json.Unmarshal(data, &d); err != nil {
		return "", err
	}
	for _, part := range []struct{ title, prefix string }{{"paictl's own: /api/v3, and signing in", ""}, {"OpenPAI's: /api/v2 and /api/v1", "/api/v2"}} {
		b.WriteString("## " + part.title + "\n\n| operation | what it does | query and headers | answer | errors |\n|---|---|---|---|---|\n")
		var lines []string
		for i := range routes {
			r := &routes[i]
			if strings.HasPrefix(r.Path, "/api/v2") == (part.prefix == "") {
				continue
			}
			lines = append(lines, d.line(r))
		}
		slices.Sort(lines)
		b.WriteString(strings.Join(lines, "") + "\n")
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}

// document is the part of the description that the page shows.
type document struct {
	Paths map[string]map[string]struct {
		Parameters []struct{ Name, In string }
		Responses  map[string]struct {
			Content map[string]struct {
				Schema map[string]any
			}
		}
	}
}

func (d *document) line(r *server.Route) string {
	o := d.Paths[Spelled(r.Path)][strings.ToLower(cmp.Or(r.Method, http.MethodGet))]
	var names []string
	for _, p := range o.Parameters {
		if p.In != "path" {
			names = append(names, "`"+p.Name+"`")
		}
	}
	answer := fmt.Sprint(cmp.Or(r.Status, http.StatusOK))
	for media, c := range o.Responses[answer].Content {
		if media == "application/json" {
			answer += " " + shown(c.Schema)
		} else {
			answer += " " + media
		}
	}
	summary := r.Summary
	if len(r.Aliases) > 0 {
		summary += ". Also: `" + strings.Join(r.Aliases, "`, `") + "`"
	}
	errors := slices.Sorted(slices.Values(r.Errors))
	cells := []string{"`" + r.Path + "` " + cmp.Or(r.Method, "any"), strings.ReplaceAll(summary, "|", "\\|"), strings.Join(names, ", "), answer, strings.Join(slices.Compact(errors), ", ")}
	return "| " + strings.Join(cells, " | ") + " |\n"
}

// shown describes a schema in a few words.
func shown(schema map[string]any) string {
	if ref, _ := schema["$ref"].(string); ref != "" {
		return strings.TrimPrefix(ref, ownRefs)
	}
	if forms, _ := schema["anyOf"].([]any); len(forms) > 0 {
		var words []string
		for _, one := range forms {
			if m, ok := one.(map[string]any); ok {
				words = append(words, shown(m))
			}
		}
		return strings.Join(words, " or ")
	}
	if items, ok := schema["items"].(map[string]any); ok {
		return "a list of " + shown(items)
	}
	if more, ok := schema["additionalProperties"].(map[string]any); ok {
		return "by name: " + shown(more)
	}
	if kind, _ := schema["type"].(string); kind == "object" {
		return "{}"
	}
	return ""
}

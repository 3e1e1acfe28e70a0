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

// intro is the text of the page before the lists of routes.
const intro = `# The REST API

Use this page to look up an operation of the platform's server (the service ` + "`rest-server`" + `), or to write a client of it.

**Contents:** [Watch jobs](#watch-jobs) · [Watch the cluster](#watch-the-cluster) · [Read a log by position](#read-a-log-by-position) · [paictl's own: /api/v3, and signing in](#paictls-own-apiv3-and-signing-in) · [OpenPAI's: /api/v2 and /api/v1](#openpais-apiv2-and-apiv1)

The server describes itself at ` + "`" + Path + "`" + ` (OpenAPI 3.1), with all fields of requests and responses. A test checks every response against that description.
This page is generated from it.

- ` + "`/api/v3`" + ` is paictl's own API, with the types that ` + "`-o json`" + ` prints. ` + "`/api/v2`" + ` and ` + "`/api/v1`" + ` are OpenPAI's. Each path also works below ` + "`/rest-server`" + `.
- Send ` + "`Authorization: Bearer TOKEN`" + `: a session's token, or one of ` + "`paictl token create`" + `.
- A browser that signed in at ` + "`/sign-in`" + ` may ask ` + "`/api/v3`" + ` without a header, from the server's own pages alone. It enters a task by a WebSocket whose protocols have a ticket (` + "`POST …/exec/ticket`" + `).
- An error is ` + "`{\"code\", \"message\", \"remedy\"?, \"findings\"?, \"request\"?}`" + `. The code is one of the operation's, or one that all operations share: %s.
  With 429 and 503, ` + "`Retry-After`" + ` is the time until the next attempt.
- ` + "`Idempotency-Key`" + ` (8 to 64 letters, digits, ` + "`.`, `_`, `-`" + `) identifies a submission: a repetition within two hours gets the first response. A different submission with the same key gets 422.

## Watch jobs

` + "`GET /api/v3/jobs/watch`" + ` responds with server-sent events: first the whole list, then its changes. It takes the filters of the list.

| event | data | meaning |
|---|---|---|
| ` + "`snapshot`" + ` | ` + "`{\"why\"}`" + ` | The events until ` + "`ready`" + ` are the whole list: discard all earlier rows. ` + "`new`" + `: the watch begins. ` + "`expired`" + `: the server no longer has the changes since your id. ` + "`grants`" + `: you may see different jobs now. |
| ` + "`job`" + ` | a row of the list | A new or changed job. It replaces an earlier row with the same ` + "`uid`" + `. |
| ` + "`gone`" + ` | ` + "`{\"uid\", \"user\", \"name\"}`" + ` | The list no longer has the job. You may not have received its row. |
| ` + "`ready`" + ` | ` + "`{\"next\"?, \"note\"?}`" + ` | The list is complete. |
| ` + "`problem`" + `, ` + "`back`" + ` | an error, ` + "`{}`" + ` | The server doesn't receive changes now; it receives them again. |
| ` + "`end`" + ` | an error | The last event. Reconnect after ` + "`retry`" + ` milliseconds, unless your token is no longer valid. |

Send the last id that you received as ` + "`Last-Event-ID`" + `, to any server of the cluster: you receive the changes since then. The server sends at least one line every 20 seconds. A person may have 100 open streams, a token 20.

## Watch the cluster

` + "`GET /api/v3/status/watch`" + ` sends the state of the cluster, cut to what you may see: a ` + "`snapshot`" + ` with all of ` + "`GET /api/v3/status`" + `, and then each ` + "`change`" + `. ` + "`parts`" + ` selects lists, such as
` + "`machines,virtualClusters`" + `. In a change, ` + "`machines`" + ` and ` + "`jobs`" + ` have the new and changed elements, ` + "`goneMachines`" + ` (names) and ` + "`goneJobs`" + ` (uids) the removed ones; any other field replaces the
former one. A new ` + "`snapshot`" + ` replaces everything. ` + "`end`" + ` is the last event.

## Read a log by position

` + "`GET …/tasks/{role}/{index}/log`" + ` returns a window of a task's log. Each line has its position, ` + "`at`" + `: a text ` + "`LOG.OFFSET`" + `, which leads to the same line as long as the log is kept, also after a retry of the
task: each attempt has another log. Texts of lines are in base64, as programs may write any bytes.

| parameter | meaning |
|---|---|
| ` + "`at`" + ` | a position, ` + "`start`" + `, ` + "`end`" + ` (the default), or a time: the first line written then or later |
| ` + "`before`" + ` | ` + "`true`" + `: the lines before ` + "`at`" + `; the default with ` + "`end`" + ` |
| ` + "`lines`" + `, ` + "`longest`" + ` | up to 2,000 lines (default 500); bytes of a line, up to 65,536 (default 8,192), or 1 MiB with ` + "`lines=1`" + `. An answer has 1 MiB of text at most |
| ` + "`wait`" + ` | up to ` + "`20s`" + `: wait for lines if ` + "`at`" + ` is the end of the log |
| ` + "`attempt`" + `, ` + "`taskAttempt`" + `, ` + "`previous`" + ` | an earlier attempt; a position names its attempt itself |

` + "`from`" + ` and ` + "`to`" + ` are the ends of the window: continue with ` + "`at=TO`" + `, or with ` + "`at=FROM&before=true`" + `, while ` + "`after`" + ` or ` + "`before`" + ` is true. To follow a log, repeat ` + "`at=TO&wait=20s`" + ` while ` + "`live`" + ` is true.
A line with ` + "`bytes`" + ` was cut: ` + "`at=POSITION&lines=1&longest=1048576`" + ` returns more of it, and ` + "`at=TO`" + ` the rest, which is ` + "`continued`" + `. ` + "`dropped`" + ` counts bytes between your position and the first line that is kept.

` + "`GET …/log/matches?match=REGEXP`" + ` searches, in RE2's syntax, the first 64 KiB of each line. A request searches 64 MiB or two seconds, and returns up to 1,000 positions with excerpts; while ` + "`after`" + ` is true, continue with
` + "`from=TO`" + `. ` + "`GET …/log/text`" + ` downloads the whole log.

` + "`LogGoneError`" + ` (410): the log of the position is no longer kept. ` + "`NoPositionsError`" + `: no agent of log-manager keeps the log; read ` + "`GET …/logs`" + `. ` + "`NoTaskLogError`" + `: the task hasn't started.

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
		b.WriteString("## " + part.title + "\n\n| operation | description | query and headers | response | errors |\n|---|---|---|---|---|\n")
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

// document holds the parts of the OpenAPI document that the page shows.
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

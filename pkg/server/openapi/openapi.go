// Package openapi describes the API as an OpenAPI 3.1 document.
// In: the table of routes, with the Go types of requests and responses. Out: the document.
package openapi

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/openpai/paictl/pkg/server"
	"github.com/openpai/paictl/pkg/server/wire"
)

// Path is the path of the document on the server.
const Path = "/api/v3/openapi.json"

// Always returns the error codes that any route may return.
func Always() []string {
	return []string{wire.CodeParameters, wire.CodeUnauthorized, wire.CodeForbidden, wire.CodeTooMany, wire.CodeTooLarge, wire.CodeMethod, wire.CodeUnknown, wire.CodeUnavailable}
}

// Route returns a route that responds with the document of all routes. The document includes this route.
func Route(version string, routes []server.Route) (server.Route, error) {
	r := server.Route{Method: http.MethodGet, Path: Path, Rule: "open", Summary: "Describes this API, as OpenAPI 3.1", Out: reflect.TypeFor[map[string]any]()}
	data, err := Document(version, append(slices.Clone(routes), r))
	if err != nil {
		return r, err
	}
	r.Serve = func(c *server.Call) error {
		wire.Bytes(c.Writer, c.Request, http.StatusOK, "application/json; charset=utf-8", data)
		return nil
	}
	return r, nil
}

// Document returns the OpenAPI document of the given routes.
func Document(version string, routes []server.Route) ([]byte, error) {
	s, paths := newSchemas(), map[string]map[string]any{}
	failure, err := s.of(reflect.TypeFor[wire.Error]())
	if err != nil {
		return nil, err
	}
	if e, ok := s.all[named(reflect.TypeFor[wire.Error]())].(map[string]any); ok {
		e["additionalProperties"] = true // RFC 6749 has its own fields, in addition to ours
	}
	for i := range routes {
		r := &routes[i]
		for n, path := range append([]string{r.Path}, r.Aliases...) {
			o, err := s.operation(r, path, failure)
			if err != nil {
				return nil, fmt.Errorf("describe %s %s: %w", r.Method, r.Path, err)
			}
			if n > 0 {
				o["description"] = "The same as " + cmp.Or(r.Method, http.MethodGet) + " " + Spelled(r.Path) + "."
			}
			at := paths[Spelled(path)]
			if at == nil {
				at = map[string]any{}
				paths[Spelled(path)] = at
			}
			at[strings.ToLower(cmp.Or(r.Method, http.MethodGet))] = o
		}
	}
	return json.Marshal(map[string]any{
		"openapi": "3.1.0",
		"info":    map[string]any{"title": "paictl", "version": version, "description": "The API of a cluster for people. /api/v3 is paictl's own, /api/v2 and /api/v1 are OpenPAI's."},
		"paths":   paths,
		"components": map[string]any{
			"schemas":         s.all,
			"securitySchemes": map[string]any{"token": map[string]any{"type": "http", "scheme": "bearer"}},
		},
	})
}

// parameter matches a parameter in the path of a route.
var parameter = regexp.MustCompile(`\{([a-zA-Z0-9]+)(\.\.\.)?\}`)

// Spelled returns the path of a route in OpenAPI's syntax.
func Spelled(path string) string { return parameter.ReplaceAllString(path, "{$1}") }

func (s *schemas) operation(r *server.Route, path string, failure any) (map[string]any, error) {
	tag, _, _ := strings.Cut(strings.TrimPrefix(path, "/api/"), "/")
	if !strings.HasPrefix(path, "/api/v") {
		tag = "other"
	}
	o := map[string]any{
		"operationId": odd.ReplaceAllString(strings.ToLower(cmp.Or(r.Method, "any"))+strings.NewReplacer("{", "", "}", "", "...", "").Replace(path), "_"),
		"summary":     r.Summary, "tags": []string{tag}, "x-rule": r.Rule,
	}
	if r.Rule != "open" && r.Link == "" {
		o["security"] = []any{map[string]any{"token": []string{}}}
	}
	var parameters []any
	for _, m := range parameter.FindAllStringSubmatch(path, -1) {
		parameters = append(parameters, map[string]any{"name": m[1], "in": "path", "required": true, "schema": map[string]any{"type": "string"}})
	}
	more, body, err := s.request(r.In)
	if err != nil {
		return nil, err
	}
	if parameters = append(parameters, more...); len(parameters) > 0 {
		o["parameters"] = parameters
	}
	if body != nil {
		o["requestBody"] = body
	}
	success, err := s.success(r)
	if err != nil {
		return nil, err
	}
	codes := append(slices.Clone(r.Errors), Always()...)
	slices.Sort(codes)
	responses := map[string]any{
		strconv.Itoa(cmp.Or(r.Status, http.StatusOK)): success,
		"default": map[string]any{"description": "An error; its code is one of " + strings.Join(slices.Compact(codes), ", ") + ".", "content": map[string]any{"application/json": map[string]any{"schema": failure}}},
	}
	if r.Accepts {
		responses[strconv.Itoa(http.StatusAccepted)] = success
	}
	o["responses"] = responses
	return o, nil
}

// request describes the parts of a request that wire.Decode decodes into a struct.
func (s *schemas) request(in reflect.Type) (parameters []any, body map[string]any, err error) {
	if in == nil || in.Kind() != reflect.Struct {
		return nil, nil, nil
	}
	for i := range in.NumField() {
		f := in.Field(i)
		for _, where := range []string{"query", "header"} {
			name := f.Tag.Get(where)
			if name == "" {
				continue
			}
			schema, err := s.of(f.Type)
			if err != nil {
				return nil, nil, err
			}
			p := map[string]any{"name": name, "in": where, "schema": schema}
			if f.Type.Kind() == reflect.Slice {
				p["style"], p["explode"] = "form", false
			}
			parameters = append(parameters, p)
		}
		switch f.Tag.Get("body") {
		case "json":
			schema, err := s.of(f.Type)
			if err != nil {
				return nil, nil, err
			}
			body = map[string]any{"content": map[string]any{"application/json": map[string]any{"schema": schema}}}
		case "form":
			schema, err := s.of(f.Type)
			if err != nil {
				return nil, nil, err
			}
			body = map[string]any{"content": map[string]any{"application/x-www-form-urlencoded": map[string]any{"schema": schema}}}
		case "text":
			body = map[string]any{"content": map[string]any{"text/yaml": map[string]any{"schema": map[string]any{"type": "string"}}}}
		}
	}
	return parameters, body, nil
}

func (s *schemas) success(r *server.Route) (map[string]any, error) {
	out := map[string]any{"description": "Success."}
	media, _, _ := strings.Cut(cmp.Or(r.Media, "application/json"), ";")
	switch {
	case r.Out != nil:
		var forms []any
		for _, t := range append([]reflect.Type{r.Out}, r.Or...) {
			schema, err := s.of(t)
			if err != nil {
				return nil, err
			}
			forms = append(forms, schema)
		}
		if len(forms) > 1 {
			forms = []any{map[string]any{"anyOf": forms}}
		}
		out["content"] = map[string]any{media: map[string]any{"schema": forms[0]}}
	case r.Media != "":
		out["content"] = map[string]any{media: map[string]any{"schema": map[string]any{"type": "string"}}}
	}
	return out, nil
}

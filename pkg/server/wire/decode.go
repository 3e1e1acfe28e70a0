package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Decode fills a struct from a request. Its fields say by their tags where they come from:
//
//	path:"user"     a part of the path
//	query:"limit"   the last value of that key; a field of type bool is true where the key has no value
//	header:"Name"   a header
//	body:"json"     the body, JSON or a form whatever the client calls it: clients of OpenPAI send JSON as text/plain
//	body:"text"     the body as it is, a string
//
// Errors are an *Error with status 400 or 413. They name keys, never values: those may be secrets.
func Decode(r *http.Request, out any) error {
	v := reflect.ValueOf(out).Elem()
	if v.Kind() != reflect.Struct {
		return nil
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return Bad("the query of the address is malformed")
	}
	for i := range v.NumField() {
		t, f := v.Type().Field(i), v.Field(i)
		switch {
		case t.Tag.Get("path") != "":
			err = scalar(t.Tag.Get("path"), r.PathValue(t.Tag.Get("path")), f)
		case t.Tag.Get("query") != "":
			err = fromQuery(query, t.Tag.Get("query"), f)
		case t.Tag.Get("header") != "":
			if values := r.Header.Values(t.Tag.Get("header")); len(values) > 0 {
				err = scalar(t.Tag.Get("header"), values[len(values)-1], f)
			}
		case t.Tag.Get("body") == "json":
			err = Body(r, f.Addr().Interface())
		case t.Tag.Get("body") == "text":
			var data []byte
			if data, err = read(r); err == nil {
				f.SetString(string(data))
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func fromQuery(query url.Values, key string, f reflect.Value) error {
	values, ok := query[key]
	switch {
	case !ok:
		return nil
	case f.Kind() == reflect.Slice:
		for _, v := range values {
			for one := range strings.SplitSeq(v, ",") {
				if one != "" {
					f.Set(reflect.Append(f, reflect.ValueOf(one)))
				}
			}
		}
		return nil
	}
	last := values[len(values)-1]
	if last == "" && f.Kind() == reflect.Bool {
		f.SetBool(true)
		return nil
	}
	if f.Kind() == reflect.Pointer {
		f.Set(reflect.New(f.Type().Elem()))
		f = f.Elem()
	}
	return scalar(key, last, f)
}

// read reads the body, as much as the route allows.
func read(r *http.Request) ([]byte, error) {
	if r.Body == nil {
		return nil, nil
	}
	data, err := io.ReadAll(r.Body)
	if large, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, &Error{Status: http.StatusRequestEntityTooLarge, Code: CodeTooLarge, Message: fmt.Sprintf("request entity too large: at most %d bytes are accepted here", large.Limit)}
	}
	if err != nil {
		return nil, Bad("the request ended before its body did")
	}
	if !utf8.Valid(data) {
		return nil, Bad("the body is not UTF-8")
	}
	return data, nil
}

// Body fills a value from a body that is JSON, JSON in a JSON string, or a form. An empty one fills nothing.
func Body(r *http.Request, out any) error {
	data, err := read(r)
	if err != nil {
		return err
	}
	text := bytes.TrimSpace(data)
	if len(text) == 0 {
		return nil
	}
	value, isJSON, err := object(text, 0)
	if err != nil {
		return err
	}
	if !isJSON {
		form, err := url.ParseQuery(string(text))
		if err != nil || !bytes.Contains(text, []byte("=")) {
			return Bad("the body is neither JSON nor a form")
		}
		fields := map[string]any{}
		for k, v := range form {
			fields[k] = v[len(v)-1]
		}
		value = fields
	}
	return assign("", value, reflect.ValueOf(out).Elem())
}

// maxDepth bounds how deep JSON is nested.
const maxDepth = 32

// object reads JSON. A text that doesn't begin as JSON does is none; a string may hold JSON.
func object(text []byte, quoted int) (value any, isJSON bool, err error) {
	if !bytes.ContainsRune([]byte(`{["`), rune(text[0])) {
		return nil, false, nil
	}
	if err := shallow(text); err != nil {
		return nil, true, err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&value); err != nil {
		return nil, true, Bad("the body is malformed JSON" + place(err))
	}
	if d.More() {
		return nil, true, Bad("the body has more than one JSON value")
	}
	if s, ok := value.(string); ok {
		inner := bytes.TrimSpace([]byte(s))
		if quoted > 0 || len(inner) == 0 || inner[0] != '{' && inner[0] != '[' {
			return nil, true, Bad("the body is a JSON string, and no object")
		}
		return object(inner, quoted+1)
	}
	return value, true, nil
}

func place(err error) string {
	if s, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Sprintf(" at byte %d", s.Offset)
	}
	return ""
}

// shallow refuses JSON that is nested deeper than any that is asked for.
func shallow(text []byte) error {
	depth, in, escaped := 0, false, false
	for _, c := range text {
		switch {
		case escaped:
			escaped = false
		case in && c == '\\':
			escaped = true
		case c == '"':
			in = !in
		case in:
		case c == '{' || c == '[':
			if depth++; depth > maxDepth {
				return Bad("the body is nested too deeply")
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return nil
}

// assign fills a value from JSON, and converts texts that hold numbers, truth values or objects where those are wanted.
func assign(at string, from any, to reflect.Value) error {
	if from == nil {
		return nil // as if it weren't there
	}
	if to.Type() == reflect.TypeFor[json.RawMessage]() {
		data, err := json.Marshal(from)
		to.SetBytes(data)
		return err
	}
	if own, ok := reader(to); ok {
		data, err := json.Marshal(from)
		if err != nil || own.UnmarshalJSON(data) != nil {
			return wrong(at, to)
		}
		return nil
	}
	switch to.Kind() {
	case reflect.Pointer:
		to.Set(reflect.New(to.Type().Elem()))
		return assign(at, from, to.Elem())
	case reflect.Interface:
		to.Set(reflect.ValueOf(from))
		return nil
	case reflect.Struct, reflect.Map, reflect.Slice:
		if s, ok := from.(string); ok {
			inner := bytes.TrimSpace([]byte(s))
			if len(inner) == 0 || inner[0] != '{' && inner[0] != '[' {
				return wrong(at, to)
			}
			value, _, err := object(inner, 1)
			if err != nil {
				return wrong(at, to)
			}
			from = value
		}
	default:
		return plain(at, from, to)
	}
	switch to.Kind() {
	case reflect.Slice:
		list, ok := from.([]any)
		if !ok {
			return wrong(at, to)
		}
		out := reflect.MakeSlice(to.Type(), len(list), len(list))
		for i := range list {
			if err := assign(fmt.Sprintf("%s[%d]", at, i), list[i], out.Index(i)); err != nil {
				return err
			}
		}
		to.Set(out)
	case reflect.Map:
		fields, ok := from.(map[string]any)
		if !ok || to.Type().Key().Kind() != reflect.String {
			return wrong(at, to)
		}
		out := reflect.MakeMap(to.Type())
		for k, v := range fields {
			one := reflect.New(to.Type().Elem()).Elem()
			if err := assign(join(at, k), v, one); err != nil {
				return err
			}
			out.SetMapIndex(reflect.ValueOf(k).Convert(to.Type().Key()), one)
		}
		to.Set(out)
	default:
		return structure(at, from, to)
	}
	return nil
}

// reader is a value that reads JSON by itself.
func reader(v reflect.Value) (json.Unmarshaler, bool) {
	if !v.CanAddr() || v.Kind() == reflect.Pointer {
		return nil, false
	}
	own, ok := v.Addr().Interface().(json.Unmarshaler)
	return own, ok
}

// structure fills a struct by its json tags. A key that it hasn't got is an error.
func structure(at string, from any, to reflect.Value) error {
	fields, ok := from.(map[string]any)
	if !ok {
		return wrong(at, to)
	}
	known := map[string]reflect.Value{}
	var walk func(v reflect.Value)
	walk = func(v reflect.Value) {
		for i := range v.NumField() {
			t := v.Type().Field(i)
			name, _, _ := strings.Cut(t.Tag.Get("json"), ",")
			switch {
			case t.Anonymous && name == "":
				walk(v.Field(i))
			case t.IsExported() && name != "-" && name != "":
				known[name] = v.Field(i)
			}
		}
	}
	walk(to)
	for k, v := range fields {
		field, ok := known[k]
		if !ok {
			return Bad(fmt.Sprintf("%q is not allowed", Shown(join(at, k))))
		}
		if err := assign(join(at, k), v, field); err != nil {
			return err
		}
	}
	return nil
}

func join(at, key string) string {
	if at == "" {
		return key
	}
	return at + "." + key
}

// plain fills a text, a number or a truth value.
func plain(at string, from any, to reflect.Value) error {
	switch v := from.(type) {
	case string:
		return scalar(at, v, to)
	case json.Number:
		if to.Kind() != reflect.Bool {
			return scalar(at, v.String(), to)
		}
	case bool:
		switch to.Kind() {
		case reflect.Bool:
			to.SetBool(v)
			return nil
		case reflect.String:
			to.SetString(strconv.FormatBool(v))
			return nil
		}
	}
	return wrong(at, to)
}

// scalar fills a value from a text.
func scalar(at, text string, to reflect.Value) error {
	switch to.Kind() {
	case reflect.String:
		to.SetString(text)
		return nil
	case reflect.Bool:
		if b, err := strconv.ParseBool(strings.ToLower(text)); err == nil {
			to.SetBool(b)
			return nil
		}
	case reflect.Int, reflect.Int32, reflect.Int64:
		n, err := strconv.ParseInt(text, 10, to.Type().Bits())
		if err != nil {
			// 4e3 and 3600.0 are whole numbers of JSON, too.
			f, ferr := strconv.ParseFloat(text, 64)
			if ferr != nil || f != math.Trunc(f) || math.Abs(f) >= 1<<53 || to.OverflowInt(int64(f)) {
				return wrong(at, to)
			}
			n = int64(f)
		}
		to.SetInt(n)
		return nil
	case reflect.Float64:
		if f, err := strconv.ParseFloat(text, 64); err == nil && !math.IsNaN(f) && !math.IsInf(f, 0) {
			to.SetFloat(f)
			return nil
		}
	case reflect.Pointer:
		to.Set(reflect.New(to.Type().Elem()))
		return scalar(at, text, to.Elem())
	}
	return wrong(at, to)
}

// wrong says what was wanted. It doesn't repeat what came.
func wrong(at string, to reflect.Value) error {
	want := map[reflect.Kind]string{
		reflect.String: "a string", reflect.Bool: "a boolean", reflect.Float64: "a number",
		reflect.Int: "an integer", reflect.Int32: "an integer", reflect.Int64: "an integer",
		reflect.Slice: "an array", reflect.Map: "an object", reflect.Struct: "an object",
	}[to.Kind()]
	if want == "" {
		want = "something else"
	}
	if at == "" {
		return Bad("the body must be " + want)
	}
	return Bad(fmt.Sprintf("%q must be %s", Shown(at), want))
}

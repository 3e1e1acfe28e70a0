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

// MaxKeys limits the number of keys in a query, because a key can be written in two bytes but takes much more memory.
const MaxKeys = 1000

// Decode decodes a request into a struct. The tags of the struct's fields specify the source of each value:
//
//	path:"user"     a part of the path
//	query:"limit"   the last value of that key; a bool field is true if the key has no value
//	header:"Name"   a header
//	body:"json"     the body, as JSON or a form; clients of OpenPAI send JSON as text/plain
//	body:"text"     the unchanged body as a string
//
// Decode returns an *Error with the status 400 or 413. The message contains only keys and no values, because values may be secrets.
func Decode(r *http.Request, out any) error {
	v := reflect.ValueOf(out).Elem()
	if v.Kind() != reflect.Struct {
		return nil
	}
	if strings.Count(r.URL.RawQuery, "&") > MaxKeys {
		return Bad(fmt.Sprintf("the query of the address has more than %d keys", MaxKeys))
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

// whole is a body that reserves memory before it is read as a whole.
type whole interface{ All() ([]byte, error) }

// read reads the body. The route limits the body's size.
func read(r *http.Request) (data []byte, err error) {
	switch b := r.Body.(type) {
	case nil:
		return nil, nil
	case whole:
		data, err = b.All()
	default:
		data, err = io.ReadAll(b)
	}
	if large, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, &Error{Status: http.StatusRequestEntityTooLarge, Code: CodeTooLarge, Message: fmt.Sprintf("request entity too large: at most %d bytes are accepted here", large.Limit)}
	}
	if own, ok := errors.AsType[*Error](err); ok {
		return nil, own
	}
	if err != nil {
		return nil, Bad("the request ended before its body did")
	}
	if !utf8.Valid(data) {
		return nil, Bad("the body is not UTF-8")
	}
	return data, nil
}

// Body decodes a body into a value. The body is JSON, a JSON string that contains JSON, or a form. An empty body doesn't change the value.
func Body(r *http.Request, out any) error {
	data, err := read(r)
	if err != nil {
		return err
	}
	text := bytes.TrimSpace(data)
	if len(text) == 0 {
		return nil
	}
	if !bytes.ContainsRune([]byte(`{["`), rune(text[0])) {
		if text, err = fromForm(string(text)); err != nil {
			return err
		}
	}
	f := filler{left: maxValues}
	if err := f.open(text); err != nil {
		return err
	}
	return f.value("", reflect.ValueOf(out).Elem())
}

// fromForm converts a form to JSON. It uses the last value of a repeated key.
func fromForm(text string) ([]byte, error) {
	if strings.Count(text, "&") > maxValues {
		return nil, errMany
	}
	form, err := url.ParseQuery(text)
	if err != nil || !strings.Contains(text, "=") {
		return nil, Bad("the body is neither JSON nor a form")
	}
	fields := map[string]string{}
	for k, v := range form {
		fields[k] = v[len(v)-1]
	}
	return json.Marshal(fields)
}

const (
	// maxDepth limits the nesting depth of JSON.
	maxDepth = 32
	// maxValues limits the number of values and keys in a body, because a value can be written in three bytes but takes much more memory.
	maxValues = 20_000
)

var errMany = Bad(fmt.Sprintf("the body has more than %d values", maxValues))

// filler decodes JSON into a value, and returns an error at the first mismatch. For a number, a boolean or an object, it also accepts a string that
// contains the value.
type filler struct {
	*json.Decoder
	left int // how many values may still follow
}

// open begins to decode a text, which must consist of one JSON value.
func (f *filler) open(text []byte) error {
	if err := f.measure(text); err != nil {
		return err
	}
	check := json.NewDecoder(bytes.NewReader(text))
	if err := check.Decode(&skipped{}); err != nil {
		return Bad("the body is malformed JSON" + place(err))
	}
	if check.More() {
		return Bad("the body has more than one JSON value")
	}
	f.Decoder = json.NewDecoder(bytes.NewReader(text))
	f.UseNumber()
	return nil
}

// skipped accepts any JSON value.
type skipped struct{}

// UnmarshalJSON implements json.Unmarshaler.
func (*skipped) UnmarshalJSON([]byte) error { return nil }

func place(err error) string {
	if s, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Sprintf(" at byte %d", s.Offset)
	}
	return ""
}

// measure returns an error for JSON that is nested too deeply or contains too many values.
func (f *filler) measure(text []byte) error {
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
			f.left--
		case c == '}' || c == ']':
			depth--
		case c == ',' || c == ':':
			f.left--
		}
		if f.left < 0 {
			return errMany
		}
	}
	return nil
}

// value decodes the next JSON value. Null doesn't change the value in Go.
func (f *filler) value(at string, to reflect.Value) error {
	base := to.Type()
	for base.Kind() == reflect.Pointer {
		base = base.Elem()
	}
	if base.Kind() == reflect.Interface || reflect.PointerTo(base).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		var text json.RawMessage
		if err := f.Decode(&text); err != nil || string(text) == "null" {
			return err
		}
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber()
		if d.Decode(to.Addr().Interface()) != nil {
			return wrong(at, reflect.New(base).Elem())
		}
		return nil
	}
	token, err := f.Token()
	if err != nil || token == nil {
		return err
	}
	for to.Kind() == reflect.Pointer {
		to.Set(reflect.New(to.Type().Elem()))
		to = to.Elem()
	}
	switch to.Kind() {
	case reflect.Struct, reflect.Map, reflect.Slice:
		if text, ok := token.(string); ok {
			return f.quoted(at, text, to)
		}
		return f.parts(at, token, to)
	}
	return plain(at, token, to)
}

// quoted decodes an object or an array from a string that contains it.
func (f *filler) quoted(at, text string, to reflect.Value) error {
	inner, in := bytes.TrimSpace([]byte(text)), filler{left: f.left}
	switch {
	case len(inner) > 0 && (inner[0] == '{' || inner[0] == '['):
		err := in.open(inner)
		if f.left = in.left; err == nil {
			return in.value(at, to)
		}
		if at == "" || errors.Is(err, errMany) {
			return err
		}
	case at == "":
		return Bad("the body is a JSON string, and no object")
	}
	return wrong(at, to)
}

// parts decodes the rest of an object or an array. first is its first token.
func (f *filler) parts(at string, first json.Token, to reflect.Value) error {
	if list := to.Kind() == reflect.Slice; list != (first == json.Delim('[')) || !list && first != json.Delim('{') {
		return wrong(at, to)
	}
	switch to.Kind() {
	case reflect.Slice:
		to.Set(reflect.MakeSlice(to.Type(), 0, 0))
	case reflect.Map:
		if to.Type().Key().Kind() != reflect.String {
			return wrong(at, to)
		}
		to.Set(reflect.MakeMap(to.Type()))
	}
	for f.More() {
		if err := f.part(at, to); err != nil {
			return err
		}
	}
	_, err := f.Token()
	return err
}

// part decodes the next element of an array, or the next key and its value. It returns an error if a struct has no field for the key. It uses the
// last value of a repeated key.
func (f *filler) part(at string, to reflect.Value) error {
	if to.Kind() == reflect.Slice {
		i := to.Len()
		to.Set(reflect.Append(to, reflect.Zero(to.Type().Elem())))
		return f.value(fmt.Sprintf("%s[%d]", at, i), to.Index(i))
	}
	token, err := f.Token()
	if err != nil {
		return err
	}
	key, _ := token.(string)
	at = join(at, key)
	if to.Kind() == reflect.Map {
		one := reflect.New(to.Type().Elem()).Elem()
		if err := f.value(at, one); err != nil {
			return err
		}
		to.SetMapIndex(reflect.ValueOf(key).Convert(to.Type().Key()), one)
		return nil
	}
	field := member(to, key)
	if !field.IsValid() {
		return Bad(fmt.Sprintf("%q is not allowed", Shown(at)))
	}
	field.SetZero()
	return f.value(at, field)
}

// member returns the field of a struct for a key. It compares the key with the json tags, and returns the zero Value if no field matches.
func member(v reflect.Value, key string) reflect.Value {
	for i := range v.NumField() {
		t := v.Type().Field(i)
		name, _, _ := strings.Cut(t.Tag.Get("json"), ",")
		switch {
		case t.Anonymous && name == "":
			if f := member(v.Field(i), key); f.IsValid() {
				return f
			}
		case t.IsExported() && name == key && name != "-" && name != "":
			return v.Field(i)
		}
	}
	return reflect.Value{}
}

func join(at, key string) string {
	if at == "" {
		return key
	}
	return at + "." + key
}

// plain decodes a string, a number or a boolean.
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

// scalar decodes a text into a string, a boolean or a number.
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
			// In JSON, 4e3 and 3600.0 are whole numbers, too.
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

// wrong returns an error that contains the expected type, but not the value.
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

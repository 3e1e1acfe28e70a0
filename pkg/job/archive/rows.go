package archive

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// parameters is the maximum number of parameters of one statement. SQLite's own limit is 32766.
const parameters = 8000

// upsert describes how to insert rows into a table so that the insertion can be repeated.
type upsert struct {
	table   string
	columns []string
	// conflict is the text after ON CONFLICT in the INSERT statement.
	conflict string
}

// replace returns an ON CONFLICT text that replaces the existing row with the same key if the condition newer is true.
func replace(key []string, columns []string, newer string) string {
	var set []string
	for _, c := range columns[len(key):] {
		set = append(set, c+" = excluded."+c)
	}
	return fmt.Sprintf("(%s) DO UPDATE SET %s WHERE %s", strings.Join(key, ", "), strings.Join(set, ", "), newer)
}

// rows returns INSERT statements for rows, with many rows in each statement. The rows must have different keys.
func (u *upsert) rows(rows [][]any) []statement {
	var out []statement
	one := "(" + strings.TrimSuffix(strings.Repeat("?, ", len(u.columns)), ", ") + ")"
	for per := parameters / len(u.columns); len(rows) > 0; {
		n := min(per, len(rows))
		s := statement{args: make([]any, 0, n*len(u.columns))}
		for _, r := range rows[:n] {
			s.args = append(s.args, r...)
		}
		s.query = fmt.Sprintf("INSERT INTO %s (%s) VALUES %s ON CONFLICT %s",
			u.table, strings.Join(u.columns, ", "), strings.TrimSuffix(strings.Repeat(one+", ", n), ", "), u.conflict)
		out = append(out, s)
		rows = rows[n:]
	}
	return out
}

// text returns a string that PostgreSQL accepts, which is valid UTF-8 without zero bytes.
func text(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "")
}

// deref returns the value of an optional string for a column that is never NULL. A nil string becomes "".
func deref(s *string) string {
	if s == nil {
		return ""
	}
	return text(*s)
}

// micros returns a time as a column value, or nil if the time is nil or zero.
func micros(t *time.Time) any {
	if t == nil || t.IsZero() {
		return nil
	}
	return t.UnixMicro()
}

func microsOf(t *metav1.Time) any {
	if t == nil {
		return nil
	}
	return micros(&t.Time)
}

// begin returns a time as the value of a column that is never NULL. A zero time becomes 0.
func begin(t metav1.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

// instant converts a column value to a time.
func instant(micros int64) time.Time { return time.UnixMicro(micros).UTC() }

func instantOf(micros sql.NullInt64) *time.Time {
	if !micros.Valid {
		return nil
	}
	t := instant(micros.Int64)
	return &t
}

// encode returns a completion as a JSON column value, or nil if v is nil.
func encode[T any](v *T) (any, error) {
	if v == nil {
		return nil, nil
	}
	data, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("write a completion: %w", err)
	}
	return string(data), nil
}

// decode converts a JSON column value to a completion, or NULL to nil.
func decode[T any](column sql.NullString) (*T, error) {
	if !column.Valid {
		return nil, nil
	}
	out := new(T)
	if err := json.Unmarshal([]byte(column.String), out); err != nil {
		return nil, fmt.Errorf("read a completion: %w", err)
	}
	return out, nil
}

package catalogue

import (
	"encoding/json"
	"fmt"
	"io/fs"
)

// Schemas returns JSON schemas for the sections of embedded services, by service name. Editors use these schemas. Each schema extends the chart's
// schema with enabled and placement, and requires no keys that have a default.
func Schemas() map[string][]byte {
	out, err := schemas(nil)
	if err != nil {
		return nil // as in Reference
	}
	return out
}

func schemas(files fs.FS) (map[string][]byte, error) {
	charts, err := readCharts(files)
	if err != nil {
		return nil, err
	}
	out := map[string][]byte{}
	for name, c := range charts {
		b, err := c.sectionSchema()
		if err != nil {
			return nil, fmt.Errorf("chart %s: %w", name, err)
		}
		out[name] = b
	}
	return out, nil
}

func (c *embeddedChart) sectionSchema() ([]byte, error) {
	s := map[string]any{"type": "object"}
	if len(c.Schema) > 0 {
		if err := json.Unmarshal(c.Schema, &s); err != nil {
			return nil, fmt.Errorf("values.schema.json: %w", err)
		}
	}
	// A separate $id keeps references valid when this schema is embedded in a larger schema.
	s["$id"] = "https://paictl.openpai.org/schemas/services/" + c.Name() + ".json"
	s["description"] = c.Metadata.Description
	properties, _ := s["properties"].(map[string]any)
	if properties == nil {
		properties = map[string]any{}
	}
	delete(properties, keyGlobal)
	delete(properties, keyCredentialsRevision)
	properties[keyEnabled] = map[string]any{"type": "boolean", "default": c.enabled, "description": "Whether the service runs."}
	if c.hasPods() {
		properties[keyPlacement] = map[string]any{
			"type": "array", "items": map[string]any{"type": "string"}, "default": c.placement,
			"description": "Roles of the layout on whose machines it runs, or all.",
		}
	}
	s["properties"] = properties
	dropRequired(s, c.Values)
	return json.MarshalIndent(s, "", "  ")
}

// dropRequired removes required keys that have a default. dropRequired changes the schema and the nested schemas.
func dropRequired(schema, defaults map[string]any) {
	if required, ok := schema["required"].([]any); ok {
		left := []any{}
		for _, key := range required {
			if name, ok := key.(string); ok && defaults[name] == nil {
				left = append(left, key)
			}
		}
		schema["required"] = left
		if len(left) == 0 {
			delete(schema, "required")
		}
	}
	properties, _ := schema["properties"].(map[string]any)
	for key, child := range properties {
		below, isMap := defaults[key].(map[string]any)
		if s, ok := child.(map[string]any); ok && isMap {
			dropRequired(s, below)
		}
	}
}

package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/url"

	"github.com/openpai/paictl/pkg/diagnose/web"
)

// answerMax is the maximum size of Prometheus' response, in bytes.
const answerMax = 16 << 20

// query sends a query to Prometheus. Each result contains the labels, and the value under the key "value".
func (c *Cluster) query(ctx context.Context, expression string) ([]map[string]string, error) {
	client := web.New(c.Kube)
	defer client.Close()
	body, err := client.Get(ctx, "prometheus", "/api/v1/query", url.Values{"query": {expression}})
	if err != nil {
		return nil, fmt.Errorf("ask Prometheus: %w", err)
	}
	defer func() { _ = body.Close() }()
	var answer struct {
		Data struct {
			Result []struct {
				Metric map[string]string `json:"metric"`
				Value  []any             `json:"value"`
			} `json:"result"`
		} `json:"data"`
	}
	if err := json.NewDecoder(io.LimitReader(body, answerMax)).Decode(&answer); err != nil {
		return nil, fmt.Errorf("read Prometheus' answer: %w", err)
	}
	var out []map[string]string
	for _, one := range answer.Data.Result {
		m := map[string]string{}
		maps.Copy(m, one.Metric)
		if len(one.Value) == 2 {
			m["value"] = fmt.Sprint(one.Value[1])
		}
		out = append(out, m)
	}
	return out, nil
}

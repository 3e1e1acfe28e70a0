{{/* grafana.ini: Grafana makes no requests to the internet. */}}
{{- define "grafana.ini" -}}
[server]
http_port = 3000
root_url = {{ .Values.rootUrl }}
[analytics]
reporting_enabled = false
check_for_updates = false
check_for_plugin_updates = false
[news]
news_feed_enabled = false
[plugins]
preinstall_disabled = true
[security]
admin_user = admin
disable_gravatar = true
cookie_secure = {{ hasPrefix "https://" .Values.rootUrl }}
[users]
allow_sign_up = false
[auth.anonymous]
enabled = {{ .Values.anonymous.enabled }}
org_role = Viewer
[dashboards]
default_home_dashboard_path = /etc/grafana/dashboards/cluster.json
{{- end -}}

{{/* grafana.datasources: where the metrics come from. The dashboards know it by its uid. */}}
{{- define "grafana.datasources" -}}
apiVersion: 1
prune: true
datasources:
  - name: Prometheus
    uid: prometheus
    type: prometheus
    access: proxy
    url: {{ .Values.prometheus.url | quote }}
    isDefault: true
    editable: false
    jsonData:
      timeInterval: 30s
    {{- if include "pai.hasAccess" . }}
    basicAuth: true
    basicAuthUser: pai
    secureJsonData:
      basicAuthPassword: $__file{/etc/pai-access/password}
    {{- end }}
{{- end -}}

{{/* grafana.providers: the folder of the dashboards. */}}
{{- define "grafana.providers" -}}
apiVersion: 1
providers:
  - name: paictl
    folder: paictl
    type: file
    allowUiUpdates: false
    options:
      path: /etc/grafana/dashboards
{{- end -}}

{{/* grafana.credentials: the Secret with the password: paictl's, or the chart's own. */}}
{{- define "grafana.credentials" -}}
{{- .Values.credentialsSecret | default (printf "%s-credentials" (include "pai.name" .)) -}}
{{- end -}}

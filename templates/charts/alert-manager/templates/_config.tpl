{{/* alert-manager.credentials: the name of the Secret with values that no other service may read. */}}
{{- define "alert-manager.credentials" -}}
{{- .Values.credentialsSecret | default (printf "%s-credentials" (include "pai.name" .)) -}}
{{- end -}}

{{/* alert-manager.file: the path of one secret: its key is its dotted path in the values. */}}
{{- define "alert-manager.file" -}}
/etc/alertmanager/credentials/{{ . }}
{{- end -}}

{{/*
alert-manager.config: alertmanager.yml. It holds no secret; where one is needed, it names a file.
*/}}
{{- define "alert-manager.config" -}}
route:
  receiver: operators
  group_by: {{ toJson .Values.route.groupBy }}
  group_wait: {{ .Values.route.groupWait }}
  group_interval: {{ .Values.route.groupInterval }}
  repeat_interval: {{ .Values.route.repeatInterval }}
  routes:
    - receiver: heartbeat
      matchers: ['alertname="Heartbeat"']
      group_wait: 0s
      group_interval: {{ .Values.receivers.heartbeat.interval }}
      # Shorter than the interval, so that each turn sends.
      repeat_interval: 1s
    {{- if .Values.alertHandler.url }}
    # All alerts, those that notify nobody as well: its policies select some. Then the routes below apply.
    - receiver: alert-handler
      group_by: [alertname, node, gpu, user, job_name]
      group_wait: 10s
      group_interval: 1m
      # An action begins only if its alert was repeated within 25 minutes, so that a silence holds it.
      repeat_interval: 10m
      continue: true
    # An alert that a route has matched doesn't get to the receiver of the route above it, so this one repeats it.
    - receiver: operators
      {{- with include "alert-manager.routes" . }}
      routes:
        {{- . | trim | nindent 8 }}
      {{- end }}
    {{- else }}
    {{- with include "alert-manager.routes" . }}
    {{- . | trim | nindent 4 }}
    {{- end }}
    {{- end }}
inhibit_rules:
  # While a machine is down, what else is wrong with it is no news.
  - source_matchers: ['alertname="NodeDown"']
    target_matchers: ['alertname!="NodeDown"']
    equal: [node]
  # While a node isn't ready, its pods can't be.
  - source_matchers: ['alertname="NodeNotReady"']
    target_matchers: ['pod!=""']
    equal: [node]
receivers:
  - name: nobody
  - name: heartbeat
    {{- if or .Values.receivers.heartbeat.url (has "receivers.heartbeat.url" .Values.credentialsKeys) }}
    webhook_configs:
      - url_file: {{ include "alert-manager.file" "receivers.heartbeat.url" }}
        send_resolved: false
    {{- end }}
  {{- if .Values.alertHandler.url }}
  - name: alert-handler
    webhook_configs:
      - url: {{ .Values.alertHandler.url | quote }}
        send_resolved: true
        {{- if .Values.alertHandler.tokenSecret }}
        http_config:
          authorization:
            credentials_file: /etc/alertmanager/alert-handler/token
        {{- end }}
  {{- end }}
  - name: operators
    {{- include "alert-manager.email" . | trim | nindent 4 }}
    {{- include "alert-manager.webhooks" . | trim | nindent 4 }}
    {{- include "alert-manager.slack" . | trim | nindent 4 }}
  {{- with .Values.customReceivers }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}

{{/* alert-manager.routes: the routes of alerts that don't notify the operators. */}}
{{- define "alert-manager.routes" -}}
{{- with .Values.customRoutes }}
{{ toYaml . }}
{{- end }}
{{- with .Values.route.silentSeverities }}
- receiver: nobody
  matchers: [{{ printf "severity=~%q" (join "|" .) | squote }}]
{{- end }}
{{- end -}}

{{- define "alert-manager.email" -}}
{{- with .Values.receivers.email }}
{{- if and .smtpHost .to }}
email_configs:
  {{- $mail := . }}
  {{- range .to }}
  - to: {{ . | quote }}
    from: {{ $mail.from | quote }}
    smarthost: {{ printf "%s:%d" $mail.smtpHost (int $mail.smtpPort) | quote }}
    {{- with $mail.authUsername }}
    auth_username: {{ . | quote }}
    auth_password_file: {{ include "alert-manager.file" "receivers.email.authPassword" }}
    {{- end }}
    require_tls: {{ and $mail.requireTLS (ne (int $mail.smtpPort) 465) }}
    send_resolved: true
  {{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "alert-manager.webhooks" -}}
{{- with .Values.receivers.webhooks }}
webhook_configs:
  {{- range $name, $hook := . }}
  {{- if $hook.url }}
  - url: {{ $hook.url | quote }}
  {{- else }}
  - url_file: {{ include "alert-manager.file" (printf "receivers.webhooks.%s.secretUrl" $name) }}
  {{- end }}
    send_resolved: {{ dig "sendResolved" true $hook }}
    {{- if eq ($hook.authorization | default "none") "bearer" }}
    http_config:
      authorization:
        credentials_file: {{ include "alert-manager.file" (printf "receivers.webhooks.%s.bearerToken" $name) }}
    {{- end }}
  {{- end }}
{{- end }}
{{- end -}}

{{- define "alert-manager.slack" -}}
{{- with .Values.receivers.slack.channel }}
slack_configs:
  - channel: {{ . | quote }}
    api_url_file: {{ include "alert-manager.file" "receivers.slack.apiUrl" }}
    send_resolved: true
{{- end }}
{{- end -}}

{{/* alert-manager.secrets: the secrets of the values by their dotted path, as JSON; for plain helm. */}}
{{- define "alert-manager.secrets" -}}
{{- $out := dict }}
{{- with .Values.receivers.email.authPassword }}{{ $_ := set $out "receivers.email.authPassword" . }}{{ end }}
{{- with .Values.receivers.slack.apiUrl }}{{ $_ := set $out "receivers.slack.apiUrl" . }}{{ end }}
{{- with .Values.receivers.heartbeat.url }}{{ $_ := set $out "receivers.heartbeat.url" . }}{{ end }}
{{- range $name, $hook := .Values.receivers.webhooks }}
{{- with $hook.secretUrl }}{{ $_ := set $out (printf "receivers.webhooks.%s.secretUrl" $name) . }}{{ end }}
{{- with $hook.bearerToken }}{{ $_ := set $out (printf "receivers.webhooks.%s.bearerToken" $name) . }}{{ end }}
{{- end }}
{{- toJson $out -}}
{{- end -}}

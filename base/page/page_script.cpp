#include "base/page/html.h"

namespace troupe::base {

// Reads what svg_curves() wrote; names nothing outside the page. Under 300 lines.
const std::string_view kPageScript = R"js(
'use strict';
(() => {
  const SVG = document.documentElement.querySelector('svg')?.namespaceURI;
  const numbers = text => text.split(' ').map(Number);
  const finite = v => Number.isFinite(v);
  const shown = v => !finite(v) ? 'n/a' : v === 0 ? '0' :
    Math.abs(v) >= 1e5 || Math.abs(v) < 1e-3 ? v.toExponential(3) : String(Number(v.toPrecision(5)));
  const counted = v => Number.isInteger(v) ? v.toLocaleString('en') : String(Number(v.toPrecision(6)));

  // Ticks and their texts: the rules of base/page/ticks.h.
  const between = (v, low, high) => Math.min(high, Math.max(low, v));
  const decades = (low, high, multiples, stride) => {
    const values = [];
    for (let e = Math.floor(Math.log10(low)); e <= Math.log10(high); ++e)
      for (const m of multiples) {
        const v = m * Math.pow(10, e);
        if (e % stride === 0 && v >= low * (1 - 1e-9) && v <= high * (1 + 1e-9)) values.push(v);
      }
    return values;
  };
  const logTicks = (low, high) => {
    let values = decades(low, high, [1, 2, 5], 1);
    for (const stride of [1, 2, 5, 10, 20, 50, 100, 200])
      if (values.length > 7) values = decades(low, high, [1], stride);
    return values;
  };
  const scientific = (v, step) => {
    const places = Math.floor(Math.log10(Math.abs(v)) + 1e-9) - Math.floor(Math.log10(step) + 1e-9);
    return v.toExponential(between(places, 0, 6)).replace('e+', 'e');
  };
  const tickText = (v, largest, step) => {
    if (v === 0) return '0';
    if (largest >= 1e9 || largest < 1e-3) return scientific(v, step);
    const letter = largest >= 1e6 ? 'M' : largest >= 1e4 && step >= 10 ? 'k' : '';
    const unit = letter === 'M' ? 1e6 : letter === 'k' ? 1e3 : 1;
    const places = between(Math.ceil(-Math.log10(step / unit) - 1e-9), 0, 6);
    if (unit === 1 && places === 0) return Math.round(v).toLocaleString('en');
    return (v / unit).toFixed(places) + letter;
  };
  const tickTexts = ticks => {
    if (ticks.length === 0) return [];
    const last = ticks[ticks.length - 1], lone = ticks.length === 1;
    const step = lone ? Math.min(1, Math.abs(last)) : ticks[1] - ticks[0];
    const even = lone || Math.abs(last - ticks[ticks.length - 2] - step) <= 1e-6 * step;
    const largest = Math.max(Math.abs(ticks[0]), Math.abs(last));
    return ticks.map(v => even ? tickText(v, largest, step) : tickText(v, Math.abs(v), Math.abs(v)));
  };

  const make = (name, attributes) => {
    const node = document.createElementNS(SVG, name);
    for (const key in attributes) node.setAttribute(key, attributes[key]);
    return node;
  };

  class Curves {
    constructor(figure) {
      this.figure = figure;
      this.svg = figure.querySelector('svg.curves');
      [this.left, this.top, this.width, this.height] = numbers(this.svg.dataset.area);
      this.x = numbers(this.svg.dataset.x);
      this.linear = numbers(this.svg.dataset.y);
      this.log = false;
      this.keys = [...figure.querySelectorAll('button.key')];
      this.series = [...this.svg.querySelectorAll('g.series')].map((node, i) => ({
        node, key: this.keys[i], output: this.keys[i].querySelector('output'),
        last: this.keys[i].querySelector('output').textContent, on: true,
        points: node.dataset.points.split(';').map(numbers)}));
      this.ticks = this.svg.querySelector('.y-ticks');
      this.cursor = make('line', {class: 'cursor', y1: this.top, y2: this.top + this.height, visibility: 'hidden'});
      this.at = make('text', {y: this.top + 12, visibility: 'hidden'});
      this.svg.append(this.cursor, this.at);
      this.listen();
    }

    listen() {
      this.series.forEach(s => s.key.addEventListener('click', () => {
        s.on = !s.on;
        s.key.setAttribute('aria-pressed', s.on);
        this.draw();
      }));
      const scale = this.figure.querySelector('button.scale');
      scale.hidden = !this.series.some(s => s.points.some(p => p[1] > 0));
      scale.addEventListener('click', () => {
        this.log = !this.log;
        scale.setAttribute('aria-pressed', this.log);
        this.draw();
      });
      const video = this.video();
      this.svg.addEventListener('pointermove', event => {
        const box = this.svg.getBoundingClientRect(), unit = this.svg.viewBox.baseVal.width / box.width;
        const share = ((event.clientX - box.left) * unit - this.left) / this.width;
        const x = this.x[0] + Math.min(1, Math.max(0, share)) * (this.x[1] - this.x[0]);
        this.show(x);
        if (video && finite(video.duration)) {
          video.pause();
          video.currentTime = Math.min(x, video.duration);
        }
      });
      this.svg.addEventListener('pointerleave', () => this.hide());
      if (video) video.addEventListener('timeupdate', () => this.show(video.currentTime));
    }

    video() {
      const pair = this.figure.closest('.pair');
      return pair && pair.querySelector('video');
    }

    /// The values nearest to x, in the legend.
    show(x) {
      let place = null;
      for (const s of this.series) {
        let best = null;
        for (const p of s.points) if (best === null || Math.abs(p[0] - x) < Math.abs(best[0] - x)) best = p;
        s.output.textContent = shown(best[1]) +
          (best.length > 2 && finite(best[2]) ? ' [' + shown(best[2]) + ', ' + shown(best[3]) + ']' : '');
        if (s.on && (place === null || Math.abs(best[0] - x) < Math.abs(place - x))) place = best[0];
      }
      if (place === null) return this.hide();
      const at = this.left + (place - this.x[0]) / (this.x[1] - this.x[0]) * this.width;
      const right = at > this.left + this.width / 2;
      this.cursor.setAttribute('x1', at);
      this.cursor.setAttribute('x2', at);
      this.at.setAttribute('x', right ? at - 6 : at + 6);
      this.at.setAttribute('text-anchor', right ? 'end' : 'start');
      this.at.textContent = counted(place);
      this.cursor.setAttribute('visibility', 'visible');
      this.at.setAttribute('visibility', 'visible');
    }

    hide() {
      for (const s of this.series) s.output.textContent = s.last;
      this.cursor.setAttribute('visibility', 'hidden');
      this.at.setAttribute('visibility', 'hidden');
    }

    usable(v) { return finite(v) && (!this.log || v > 0); }

    /// The range of y of what is shown; all of it as the page was written where nothing is hidden.
    range() {
      if (!this.log && this.series.every(s => s.on)) return this.linear;
      let low = Infinity, high = -Infinity;
      for (const s of this.series) {
        if (!s.on) continue;
        for (const p of s.points) for (const v of p.slice(1)) {
          if (!this.usable(v)) continue;
          low = Math.min(low, v);
          high = Math.max(high, v);
        }
      }
      if (low > high) return this.log ? [1, 10] : this.linear;
      if (this.log) {
        const room = Math.pow(Math.max(high / low, 1.1), 0.05);
        return [low / room, high * room];
      }
      const height = high - low, size = Math.max(Math.abs(low), Math.abs(high));
      const room = height === 0 ? size * 0.1 || 1 : Math.max(0.05 * height, 0.5 * (5e-4 * size - height));
      return [low - room, high + room];
    }

    tickValues(low, high) {
      const log = this.log ? logTicks(low, high) : [];
      if (log.length > 1) return log;
      const raw = (high - low) / 5, power = Math.pow(10, Math.floor(Math.log10(raw))), share = raw / power;
      const step = power * (share <= 1 ? 1 : share <= 2 ? 2 : share <= 5 ? 5 : 10);
      const values = [];
      for (let i = Math.ceil(low / step - 1e-9); i <= Math.floor(high / step + 1e-9); ++i) values.push(i * step);
      return values;
    }

    draw() {
      const [low, high] = this.range();
      const up = this.log ? v => Math.log(high / v) / Math.log(high / low) : v => (high - v) / (high - low);
      const x = v => (this.left + (v - this.x[0]) / (this.x[1] - this.x[0]) * this.width).toFixed(1);
      const y = v => (this.top + up(v) * this.height).toFixed(1);
      this.ticks.replaceChildren();
      const values = this.tickValues(low, high), texts = tickTexts(values);
      for (const [i, v] of values.entries()) {
        this.ticks.append(make('path', {class: 'grid', d: `M${this.left} ${y(v)}h${this.width}`}));
        const text = make('text', {x: this.left - 7, y: Number(y(v)) + 5, 'text-anchor': 'end'});
        text.textContent = texts[i];
        this.ticks.append(text);
      }
      for (const s of this.series) {
        s.node.style.display = s.on ? '' : 'none';
        if (s.on) this.drawSeries(s, x, y);
      }
    }

    drawSeries(s, x, y) {
      let line = '', marks = '', band = '', forth = [], back = [], open = false;
      const close = () => {
        if (forth.length) band += 'M' + forth.concat(back.reverse()).join('L') + 'Z';
        forth = [];
        back = [];
      };
      for (const [i, p] of s.points.entries()) {
        if (this.usable(p[1])) {
          const lone = !open && !(i + 1 < s.points.length && this.usable(s.points[i + 1][1]));
          line += lone ? `M${x(p[0])} ${y(p[1])}m-2 0h4` : (open ? 'L' : 'M') + x(p[0]) + ' ' + y(p[1]);
          marks += 'M' + x(p[0]) + ' ' + y(p[1]) + 'h0';
        }
        open = this.usable(p[1]);
        if (p.length > 2 && this.usable(p[2]) && this.usable(p[3])) {
          forth.push(x(p[0]) + ' ' + y(p[3]));
          back.push(x(p[0]) + ' ' + y(p[2]));
        } else {
          close();
        }
      }
      close();
      for (const [name, d] of [['line', line], ['marks', marks], ['band', band]]) {
        const path = s.node.querySelector('.' + name);
        if (path) path.setAttribute('d', d);
      }
    }
  }

  document.querySelectorAll('figure.curves').forEach(figure => new Curves(figure));
})();
)js";

}  // namespace troupe::base

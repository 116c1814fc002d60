/** Lines and shapes on the graphics card, through three.js: millions of pixels, no layout. */

import {
  CustomBlending,
  DataTexture,
  DoubleSide,
  DynamicDrawUsage,
  Float32BufferAttribute,
  GLSL3,
  InstancedBufferGeometry,
  InstancedInterleavedBuffer,
  InterleavedBufferAttribute,
  Mesh,
  OneFactor,
  OneMinusSrcAlphaFactor,
  OrthographicCamera,
  RawShaderMaterial,
  Scene,
  SrcAlphaFactor,
  Vector2,
  Vector4,
  WebGLRenderer,
} from "three";
import { Ramp } from "./colours";

/** The part of the world that is seen: its middle, and pixels per unit to the right and downwards. */
export interface View {
  x: number;
  y: number;
  scale: number;
  down: number;
}

const LINE_SHADER = `
precision highp float;
in vec2 corner;
in vec4 ends;
in vec3 look; // value, width in pixels, shift to the right in pixels
uniform vec2 size;
uniform vec4 view;
out float value;
out float across;
out float reach;
void main() {
  vec2 a = (ends.xy - view.xy) * view.zw;
  vec2 b = (ends.zw - view.xy) * view.zw;
  vec2 along = b - a;
  float long_ = length(along);
  vec2 unit = long_ > 0.0 ? along / long_ : vec2(1.0, 0.0);
  vec2 normal = vec2(-unit.y, unit.x);
  reach = look.y * 0.5;
  across = corner.y * (reach + 1.0);
  vec2 at = mix(a, b, corner.x) + normal * (across + look.z);
  value = look.x;
  gl_Position = vec4(at / (size * 0.5) * vec2(1.0, -1.0), 0.0, 1.0);
}`;

const LINE_COLOUR = `
precision highp float;
in float value;
in float across;
in float reach;
uniform sampler2D ramp;
uniform float fade;
out vec4 colour;
void main() {
  float alpha = clamp(reach - abs(across) + 0.5, 0.0, 1.0);
  float strength = value <= 0.0 ? fade : mix(max(fade, 0.4), 1.0, value);
  colour = vec4(texture(ramp, vec2(clamp(value, 0.0, 1.0), 0.5)).rgb, alpha * strength);
}`;

const SHAPE_SHADER = `
precision highp float;
in vec2 corner;
in vec4 place; // x, y, half width and half height in pixels
in vec2 look; // value, kind: 0 disc, 1 box, 2 outlined box, 3 outlined disc
uniform vec2 size;
uniform vec4 view;
out float value;
out vec2 at;
out vec2 half_;
flat out float kind;
void main() {
  half_ = place.zw;
  at = (corner * 2.0 - 1.0) * (half_ + 1.0);
  vec2 middle = (place.xy - view.xy) * view.zw;
  value = look.x;
  kind = look.y;
  gl_Position = vec4((middle + at) / (size * 0.5) * vec2(1.0, -1.0), 0.0, 1.0);
}`;

const SHAPE_COLOUR = `
precision highp float;
in float value;
in vec2 at;
in vec2 half_;
flat in float kind;
uniform sampler2D ramp;
out vec4 colour;
void main() {
  bool disc = kind == 0.0 || kind == 3.0;
  float round_ = min(3.0, half_.y);
  vec2 q = abs(at) - half_ + round_;
  float distance_ = disc ? length(at) - half_.x : length(max(q, 0.0)) + min(max(q.x, q.y), 0.0) - round_;
  float alpha = clamp(0.5 - distance_, 0.0, 1.0);
  vec3 filled = texture(ramp, vec2(clamp(value, 0.0, 1.0), 0.5)).rgb;
  if (kind >= 2.0) alpha *= distance_ > -1.6 ? 1.0 : 0.08 + 0.2 * clamp(value, 0.0, 1.0);
  colour = vec4(filled, alpha);
}`;

/** Numbers of each line, and of each shape. */
export const LINE = 7;
export const SHAPE = 6;

/** Instances of one kind, in a buffer that grows. */
class Batch {
  readonly mesh: Mesh<InstancedBufferGeometry, RawShaderMaterial>;
  data = new Float32Array(0);
  private buffer: InstancedInterleavedBuffer | null = null;

  constructor(
    private readonly width: number,
    private readonly attributes: [string, number, number][],
    material: RawShaderMaterial,
    private readonly corners: number[],
  ) {
    this.mesh = new Mesh(this.geometry(), material);
    this.mesh.frustumCulled = false;
  }

  /** The corners of an instance, with the instances in the buffer. */
  private geometry(): InstancedBufferGeometry {
    const geometry = new InstancedBufferGeometry();
    geometry.setAttribute("corner", new Float32BufferAttribute(this.corners, 2));
    geometry.setIndex([0, 1, 2, 2, 1, 3]);
    if (this.buffer) {
      for (const [name, size, offset] of this.attributes) {
        geometry.setAttribute(name, new InterleavedBufferAttribute(this.buffer, size, offset));
      }
    }
    return geometry;
  }

  /** Room for so many instances; what was in it is lost. */
  room(instances: number): Float32Array {
    if (!this.buffer || this.data.length < instances * this.width) {
      this.data = new Float32Array(Math.max(1024, Math.ceil(instances * 1.5)) * this.width);
      this.buffer = new InstancedInterleavedBuffer(this.data, this.width);
      this.buffer.setUsage(DynamicDrawUsage);
      // A geometry keeps the number of instances that it had room for at first.
      this.mesh.geometry.dispose();
      this.mesh.geometry = this.geometry();
    }
    return this.data;
  }

  /** Draws the first `instances`. */
  show(instances: number): void {
    this.mesh.geometry.instanceCount = instances;
    this.mesh.visible = instances > 0;
    if (this.buffer && instances > 0) {
      this.buffer.clearUpdateRanges();
      this.buffer.addUpdateRange(0, instances * this.width);
      this.buffer.needsUpdate = true;
    }
  }
}

/** A canvas that draws lines and, upon them, shapes. */
export class Painter {
  readonly lines: Batch;
  readonly shapes: Batch;
  private readonly renderer: WebGLRenderer;
  private readonly scene = new Scene();
  private readonly camera = new OrthographicCamera();
  private readonly size = new Vector2(1, 1);
  private readonly view = new Vector4();
  private readonly texture: DataTexture;
  private readonly fade = { value: 0.35 };
  private coloured: Ramp | null = null;
  private sharpness = 1;

  constructor(canvas: HTMLCanvasElement) {
    this.renderer = new WebGLRenderer({
      canvas,
      antialias: false,
      alpha: true,
      depth: false,
      stencil: false,
    });
    this.texture = new DataTexture(new Ramp(true).bytes, 256, 1);
    const uniforms = {
      size: { value: this.size },
      view: { value: this.view },
      ramp: { value: this.texture },
      fade: this.fade,
    };
    const material = (vertexShader: string, fragmentShader: string) =>
      new RawShaderMaterial({
        vertexShader,
        fragmentShader,
        uniforms,
        glslVersion: GLSL3,
        transparent: true,
        // Down is up on the graphics card.
        side: DoubleSide,
        depthTest: false,
        depthWrite: false,
        blending: CustomBlending,
        blendSrc: SrcAlphaFactor,
        blendDst: OneMinusSrcAlphaFactor,
        // The page lies behind, as it is: the canvas itself is as opaque as what was drawn.
        blendSrcAlpha: OneFactor,
        blendDstAlpha: OneMinusSrcAlphaFactor,
      });
    const lines: [string, number, number][] = [
      ["ends", 4, 0],
      ["look", 3, 4],
    ];
    const shapes: [string, number, number][] = [
      ["place", 4, 0],
      ["look", 2, 4],
    ];
    this.lines = new Batch(LINE, lines, material(LINE_SHADER, LINE_COLOUR), [0, -1, 1, -1, 0, 1, 1, 1]);
    this.shapes = new Batch(SHAPE, shapes, material(SHAPE_SHADER, SHAPE_COLOUR), [0, 0, 1, 0, 0, 1, 1, 1]);
    this.lines.mesh.renderOrder = 0;
    this.shapes.mesh.renderOrder = 1;
    this.scene.add(this.lines.mesh, this.shapes.mesh);
  }

  /** The colours of values. */
  colour(ramp: Ramp): void {
    if (this.coloured === ramp) return;
    this.coloured = ramp;
    (this.texture.image.data as Uint8Array).set(ramp.bytes);
    this.texture.needsUpdate = true;
  }

  /** The size in pixels of the style sheet. */
  resize(width: number, height: number): void {
    this.size.set(width, height);
    this.sharpened();
  }

  /** Draws with so many pixels of those that the screen has, each way. */
  sharpen(sharpness: number): void {
    if (this.sharpness === sharpness) return;
    this.sharpness = sharpness;
    this.sharpened();
  }

  private sharpened(): void {
    this.renderer.setPixelRatio(this.sharpness * Math.min(devicePixelRatio, 2));
    this.renderer.setSize(this.size.x, this.size.y, false);
  }

  /** Draws what the batches show; links without a value are as faint as `fade`. */
  draw(view: View, fade: number): void {
    this.fade.value = fade;
    this.view.set(view.x, view.y, view.scale, view.down);
    this.renderer.render(this.scene, this.camera);
  }
}
